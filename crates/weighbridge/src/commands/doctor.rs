//! `weighbridge doctor`.

use wb_knobs::doctor::{Finding, Verdict};
use wb_report::text::{Align, Cell, Table, Tone};
use wb_sys::SysRoot;

use super::remote::{Word, on_hosts};
use super::{print_json, print_text};
use crate::cli::DoctorArgs;
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;

/// Says what makes noise here.
pub(crate) fn doctor(args: &DoctorArgs, console: &Console) -> Result<Exit, Error> {
    if args.machines.are_given() {
        let flags = [("--all", args.all), ("--json", args.json)].into_iter().filter(|(_, is_given)| *is_given);
        let words: Vec<Word> = ["doctor"].into_iter().chain(flags.map(|(flag, _)| flag)).map(Word::plain).collect();
        return on_hosts(&args.machines, &words, args.json, console);
    }
    let diagnosis = wb_knobs::doctor(&SysRoot::real());
    if args.json {
        print_json(&diagnosis)?;
    } else {
        let text = drawn(&diagnosis.findings, args.all, console);
        print_text(&(text + &remedy(&diagnosis.remedies)))?;
    }
    Ok(if diagnosis.is_quiet() { Exit::Fine } else { Exit::FellShort })
}

/// The command line that would help here.
fn remedy(settings: &[String]) -> String {
    if settings.is_empty() {
        return String::new();
    }
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    let line = format!("{sudo}weighbridge tune apply {}", settings.join(" "));
    format!("this makes what can be set here quiet, and `tune revert` puts it back:\n  {line}\n")
}

fn drawn(findings: &[Finding], all: bool, console: &Console) -> String {
    let noisy: Vec<&Finding> = findings.iter().filter(|finding| matches!(finding.verdict, Verdict::Noisy)).collect();
    let mut text = String::new();
    for finding in &noisy {
        text += &format!("noisy: {} ({}): {}\n", finding.name, finding.target, finding.state);
        text += &console.out.indented(2, &format!("why: {}", finding.why));
        text += &console.out.indented(2, &format!("evidence: {}", finding.evidence));
        if let Some(advice) = &finding.advice {
            text += &console.out.indented(2, &format!("better: {}", advice.what));
            if let Some(command) = &advice.command {
                text += &format!("  to change it: {command}\n");
            }
        }
        text.push('\n');
    }
    if all {
        let mut table = Table::new(&[
            ("what", Align::Left),
            ("where", Align::Left),
            ("state", Align::Left),
            ("verdict", Align::Left),
        ]);
        for finding in findings {
            let (word, tone) = match &finding.verdict {
                Verdict::Quiet => ("quiet".to_owned(), Tone::Good),
                Verdict::Noisy => ("noisy".to_owned(), Tone::Bad),
                Verdict::Unknown { reason } => (format!("unknown: {reason}"), Tone::Doubtful),
                Verdict::Unsupported { reason } => (format!("unsupported: {reason}"), Tone::Quiet),
            };
            let state = finding.state.as_str();
            table.row(vec![
                finding.name.as_str().into(),
                finding.target.as_str().into(),
                state.into(),
                Cell::toned(word, tone),
            ]);
        }
        text += &table.draw(console.out);
        text.push('\n');
    }
    let count = |kind: fn(&Verdict) -> bool| findings.iter().filter(|finding| kind(&finding.verdict)).count();
    text + &format!(
        "{} noisy, {} quiet, {} unknown, {} not here{}\n",
        noisy.len(),
        count(|verdict| matches!(verdict, Verdict::Quiet)),
        count(|verdict| matches!(verdict, Verdict::Unknown { .. })),
        count(|verdict| matches!(verdict, Verdict::Unsupported { .. })),
        if all { "" } else { "; --all shows each" }
    )
}

//! `weighbridge doctor`: reports what makes measurements noisy, and how to change it.

use wb_knobs::{Diagnosis, Finding, NoiseVerdict};
use wb_report::text::{Align, Table, TableCell, Tone};
use wb_session::remote::RemoteArgument;
use wb_sys::SysRoot;

use super::remote::{OutputMode, RemoteTarget, run_on_hosts};
use crate::cli::{DoctorArgs, OnHosts};
use crate::console::Console;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::{print_json, print_text};

pub(crate) fn doctor(OnHosts { args, hosts }: &OnHosts<DoctorArgs>, console: &Console) -> Result<Exit, Error> {
    if hosts.is_given() {
        let words = ["doctor", "--json"].map(RemoteArgument::plain);
        let render = |target: &RemoteTarget, stdout: &[u8]| match serde_json::from_slice::<Diagnosis>(stdout) {
            Ok(diagnosis) => render_diagnosis(&diagnosis, Some(target), args.all, console),
            // The command failed, with the reason on standard error.
            Err(_) => String::from_utf8_lossy(stdout).into_owned(),
        };
        let output = if args.json { OutputMode::Json } else { OutputMode::Rendered(&render) };
        return run_on_hosts(hosts, &words, output, console);
    }
    diagnose(args, console)
}

pub(super) fn diagnose(args: &DoctorArgs, console: &Console) -> Result<Exit, Error> {
    let diagnosis = wb_knobs::doctor(&SysRoot::real());
    if args.json {
        print_json(&diagnosis)?;
    } else {
        print_text(&render_diagnosis(&diagnosis, None, args.all, console))?;
    }
    Ok(if diagnosis.is_quiet() { Exit::Success } else { Exit::Incomplete })
}

/// Renders a diagnosis with the command line that applies its remedies; `target` is `None` for this machine.
fn render_diagnosis(diagnosis: &Diagnosis, target: Option<&RemoteTarget>, all: bool, console: &Console) -> String {
    let target = target.filter(|target| !target.options.is_empty());
    render_findings(&diagnosis.findings, target, all, console) + &render_remedy(&diagnosis.remedies, target)
}

fn render_remedy(settings: &[String], target: Option<&RemoteTarget>) -> String {
    if settings.is_empty() {
        return String::new();
    }
    if let Some(RemoteTarget { name, options }) = target {
        let options = shell_words::join(options);
        return format!(
            "to apply the recommended settings on `{name}`:\n  weighbridge tune apply {} {options}\n\
             to revert them:\n  weighbridge tune revert {options}\n",
            settings.join(" ")
        );
    }
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    let line = format!("{sudo}weighbridge tune apply {}", settings.join(" "));
    format!("to apply the recommended settings (`tune revert` reverts them):\n  {line}\n")
}

fn render_findings(findings: &[Finding], target: Option<&RemoteTarget>, all: bool, console: &Console) -> String {
    let on_target = target.map_or_else(String::new, |target| format!(" on `{}`", target.name));
    let noisy: Vec<&Finding> =
        findings.iter().filter(|finding| matches!(finding.verdict, NoiseVerdict::Noisy)).collect();
    let mut text = String::new();
    for finding in &noisy {
        text += &format!("noisy: {} ({}): {}\n", finding.name, finding.target, finding.state);
        text += &console.stdout_style.indent(2, &format!("why: {}", finding.why));
        text += &console.stdout_style.indent(2, &format!("evidence: {}", finding.evidence));
        if let Some(advice) = &finding.advice {
            text += &console.stdout_style.indent(2, &format!("better: {}", advice.what));
            if let Some(command) = &advice.command {
                text += &format!("  to change it{on_target}: {command}\n");
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
                NoiseVerdict::NoNoise => ("no noise".to_owned(), Tone::Good),
                NoiseVerdict::Noisy => ("noisy".to_owned(), Tone::Bad),
                NoiseVerdict::Unknown { reason } => (format!("unknown: {reason}"), Tone::Doubtful),
                NoiseVerdict::Unsupported { reason } => (format!("unsupported: {reason}"), Tone::Quiet),
            };
            let state = finding.state.as_str();
            table.row(vec![
                finding.name.as_str().into(),
                finding.target.as_str().into(),
                state.into(),
                TableCell::with_tone(word, tone),
            ]);
        }
        text += &table.draw(console.stdout_style);
        text.push('\n');
    }
    let count = |kind: fn(&NoiseVerdict) -> bool| findings.iter().filter(|finding| kind(&finding.verdict)).count();
    text + &format!(
        "{} noisy, {} without noise, {} unknown, {} unsupported{}\n",
        noisy.len(),
        count(|verdict| matches!(verdict, NoiseVerdict::NoNoise)),
        count(|verdict| matches!(verdict, NoiseVerdict::Unknown { .. })),
        count(|verdict| matches!(verdict, NoiseVerdict::Unsupported { .. })),
        if all { "" } else { "; --all shows each" }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remedy_for_another_host_names_that_host() {
        let words = ["--inventory", "my hosts.toml", "--hosts", "a"];
        let options = words.map(str::to_owned).to_vec();
        let target = RemoteTarget { name: wb_model::WorkerName::new("a").unwrap(), options };
        insta::assert_snapshot!(render_remedy(&["swappiness=1".to_owned()], Some(&target)), @r"
        to apply the recommended settings on `a`:
          weighbridge tune apply swappiness=1 --inventory 'my hosts.toml' --hosts a
        to revert them:
          weighbridge tune revert --inventory 'my hosts.toml' --hosts a
        ");
    }
}

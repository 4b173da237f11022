//! `weighbridge man`: one page for all commands, from their declarations.

use std::io::Write;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::Cli;
use crate::exit::MEANINGS;

/// What in the environment is heeded.
const ENVIRONMENT: [(&str, &str); 5] = [
    ("NO_COLOR", "where it is set and not empty, nothing is coloured unless --color asks for it"),
    ("TERM", "on a terminal that is `dumb` nothing is coloured and nothing moves"),
    ("XDG_CONFIG_HOME", "where weighbridge/tests.d with definitions of tests is looked for; ~/.config by default"),
    ("WEIGHBRIDGE_LOCKS", "where runs of all users announce themselves to each other; /run/lock by default"),
    ("PATH", "where the programs that tests need are looked for"),
];

/// What is read and written.
const FILES: [(&str, &str); 2] = [
    ("~/.config/weighbridge/tests.d/*.toml", "definitions of tests of one's own"),
    ("weighbridge-DATE-TIME/", "the run folder where --into names no other"),
];

/// The page.
pub(crate) fn render_page() -> String {
    let program = Cli::build_command();
    let visible: Vec<&Command> = program.get_subcommands().filter(|command| !command.is_hide_set()).collect();
    let whole = Man::new(program.clone()).manual("Weighbridge");
    let mut page = String::from(APOSTROPHE);
    page += &capture(|out| whole.render_title(out));
    page += &capture(|out| whole.render_name_section(out));
    page += &render_roff(|roff| {
        roff.control("SH", ["SYNOPSIS"]);
        visible.iter().for_each(|command| write_synopsis(roff, command));
    });
    page += &capture(|out| whole.render_description_section(out));
    page += &capture(|out| whole.render_options_section(out));
    page += ".SH COMMANDS\n";
    visible.iter().for_each(|command| page += &command_section(command));
    page += &definition_list("EXIT STATUS", MEANINGS.map(|(exit, meaning)| (exit.code().to_string(), meaning)));
    page += &definition_list("ENVIRONMENT", ENVIRONMENT.map(|(name, what)| (name.to_owned(), what)));
    page += &definition_list("FILES", FILES.map(|(name, what)| (name.to_owned(), what)));
    page
}

/// What one command is for, and its options.
fn command_section(command: &Command) -> String {
    let about = render_roff(|roff| {
        roff.control("SS", [command.get_name()]);
        write_synopsis(roff, command);
        roff.control("PP", []);
        let about = command.get_long_about().or_else(|| command.get_about()).map(ToString::to_string);
        roff.text([roman(about.unwrap_or_default())]);
    });
    let man = Man::new(command.clone().disable_help_flag(true));
    let options = capture(|out| man.render_options_section(out));
    // Headings of sections would end that of the commands.
    let beneath = |line: &str| match line.strip_prefix(".SH ") {
        Some("OPTIONS") => String::new(),
        Some(heading) => format!(".PP\n\\fI{}\\fR\n", heading.trim_matches('"').to_lowercase()),
        None => format!("{line}\n"),
    };
    let after = command.get_after_help().map(ToString::to_string);
    let after = after.map(|after| render_roff(|roff| _ = roff.control("PP", []).text([roman(after)])));
    about + &options.lines().map(beneath).collect::<String>() + &after.unwrap_or_default()
}

/// How a command is typed, on a line of its own.
fn write_synopsis(roff: &mut Roff, command: &Command) {
    let name = format!("weighbridge {}", command.get_name());
    let usage = command.clone().bin_name(&name).render_usage().to_string();
    let arguments = usage.trim_start_matches("Usage:").trim().trim_start_matches(&name).to_owned();
    roff.text([bold(name), roman(arguments)]);
    roff.control("br", []);
}

/// A section of terms and what they mean.
fn definition_list(title: &str, terms: impl IntoIterator<Item = (String, &'static str)>) -> String {
    render_roff(|roff| {
        roff.control("SH", [title]);
        for (term, meaning) in terms {
            roff.control("TP", []);
            roff.text([bold(term)]);
            roff.text([roman(meaning)]);
        }
    })
}

/// How roff is told to draw an apostrophe; it stands before everything else, once.
const APOSTROPHE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

fn render_roff(write: impl FnOnce(&mut Roff)) -> String {
    let mut roff = Roff::new();
    write(&mut roff);
    roff.render().replace(APOSTROPHE, "")
}

fn capture(render: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> String {
    let mut text = Vec::new();
    // Writing into memory does not fail.
    let _ = render(&mut text);
    String::from_utf8_lossy(&text).replace(APOSTROPHE, "")
}

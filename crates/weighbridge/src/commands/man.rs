//! `weighbridge man`: generates man pages from the declarations of commands.

use std::io::Write;

use clap::Command;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::cli::{Cli, OutputFolder};
use crate::error::Error;
use crate::exit::MEANINGS;
use crate::output::write_file;

const ENVIRONMENT: [(&str, &str); 5] = [
    ("NO_COLOR", "if set and not empty, disables colours unless --color enables them"),
    ("TERM", "`dumb` disables colours and animations"),
    ("XDG_CONFIG_HOME", "folder that contains weighbridge/tests.d with test definitions; ~/.config by default"),
    (
        "WEIGHBRIDGE_LOCKS",
        "folder of lock files, by which the runs of all users detect each other; /run/lock by default",
    ),
    ("PATH", "search path for the programs that tests need"),
];

const FILES: [(&str, &str); 2] = [
    ("~/.config/weighbridge/tests.d/*.toml", "custom test definitions"),
    ("weighbridge-DATE-TIME/", "default run folder, without --into"),
];

/// Writes weighbridge.1, the page of all commands, and a page for each command.
pub(crate) fn write_pages(folder: &OutputFolder) -> Result<(), Error> {
    std::fs::create_dir_all(folder.as_path()).map_err(Error::file("create", folder.as_path()))?;
    let mut program = Cli::build_command().disable_help_subcommand(true);
    program.build();
    program.get_subcommands().try_for_each(|command| write_pages_of(command, folder))?;
    write_file(&folder.join("weighbridge.1"), &render_page())
}

fn write_pages_of(command: &Command, folder: &OutputFolder) -> Result<(), Error> {
    if command.is_hide_set() {
        return Ok(());
    }
    command.get_subcommands().try_for_each(|command| write_pages_of(command, folder))?;
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page).map_err(|error| Error::Internal(error.to_string()))?;
    write_file(&folder.join(man.get_filename()), &page)
}

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
    // Section headings would end the COMMANDS section, so they become paragraphs.
    let demote_heading = |line: &str| match line.strip_prefix(".SH ") {
        Some("OPTIONS") => String::new(),
        Some(heading) => format!(".PP\n\\fI{}\\fR\n", heading.trim_matches('"').to_lowercase()),
        None => format!("{line}\n"),
    };
    let after = command.get_after_help().map(ToString::to_string);
    let after = after.map(|after| render_roff(|roff| _ = roff.control("PP", []).text([roman(after)])));
    about + &options.lines().map(demote_heading).collect::<String>() + &after.unwrap_or_default()
}

fn write_synopsis(roff: &mut Roff, command: &Command) {
    let name = format!("weighbridge {}", command.get_name());
    let usage = command.clone().bin_name(&name).render_usage().to_string();
    let arguments = usage.trim_start_matches("Usage:").trim().trim_start_matches(&name).to_owned();
    roff.text([bold(name), roman(arguments)]);
    roff.control("br", []);
}

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

/// The roff definition of the apostrophe, which must precede everything else exactly once.
const APOSTROPHE: &str = ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n";

fn render_roff(write: impl FnOnce(&mut Roff)) -> String {
    let mut roff = Roff::new();
    write(&mut roff);
    roff.render().replace(APOSTROPHE, "")
}

fn capture(render: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> String {
    let mut text = Vec::new();
    // Writing to memory cannot fail.
    let _ = render(&mut text);
    String::from_utf8_lossy(&text).replace(APOSTROPHE, "")
}

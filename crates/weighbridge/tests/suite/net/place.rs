//! A lab with a token and a network server.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use crate::lab::{CommandResult, KillOnDrop, Lab};

/// Environment variable of the shared token.
pub(crate) const TOKEN: &str = "WEIGHBRIDGE_NET_TOKEN";

/// A lab whose commands share a token.
pub(crate) struct NetLab {
    pub(crate) lab: Lab,
    token: String,
}

/// A server, killed when dropped.
pub(crate) struct Server {
    child: KillOnDrop,
    pub(crate) port: u16,
}

impl NetLab {
    pub(crate) fn new() -> Self {
        let lab = Lab::new();
        let token = lab.weighbridge("net token").out.trim().to_owned();
        Self::with_token(lab, token)
    }

    pub(crate) fn with_token(lab: Lab, token: String) -> Self {
        Self { lab, token }
    }

    /// A lab with a server that has no flags.
    pub(crate) fn with_server() -> (Self, Server) {
        let lab = Self::new();
        let server = lab.serve("");
        (lab, server)
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = self.lab.command(line);
        command.env(TOKEN, &self.token);
        command
    }

    /// Runs `weighbridge net` with these arguments to completion.
    pub(crate) fn net(&self, line: &str) -> CommandResult {
        self.lab.run_command(&mut self.command(&format!("net {line}")))
    }

    /// Starts a server on a port chosen by the kernel.
    pub(crate) fn serve(&self, flags: &str) -> Server {
        let mut command = self.command(&format!("net serve --port 0 {flags}"));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        // Keep reading, so that the server never blocks on a full pipe.
        std::thread::spawn(move || stderr.read_to_end(&mut Vec::new()));
        let port =
            line.split_once(',').and_then(|(position, _)| position.rsplit_once(':')).map(|(_, port)| port.parse());
        Server { child: KillOnDrop(child), port: port.unwrap_or_else(|| panic!("{line}")).unwrap() }
    }

    /// Starts `weighbridge net` with these arguments; returns a channel with the lines of its standard output.
    pub(crate) fn start(&self, line: &str) -> (Child, mpsc::Receiver<String>) {
        let mut command = self.command(&format!("net {line}"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        (child, lines)
    }
}

impl Server {
    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.child.0.kill().unwrap();
        self.child.0.wait().unwrap();
    }
}

/// Masks the figures of a text and collapses its spaces, so that only the words are compared.
pub(crate) fn masked(text: &str, server: &Server) -> String {
    let text = text.replace(&format!(":{}", server.port), ":PORT");
    let line = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<String> = line.split_whitespace().map(mask).collect();
        let mut out: Vec<String> = Vec::new();
        for word in words {
            // A unit's prefix depends on the figure before it.
            if out.last().is_some_and(|last| last == "#") && is_unit(&word) {
                continue;
            }
            out.push(word);
        }
        " ".repeat(if indent > 4 { 4 } else { indent }) + &out.join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn mask(word: &str) -> String {
    let (body, end) = match word.strip_suffix([',', ';']) {
        Some(body) => (body, &word[body.len()..]),
        None => (word, ""),
    };
    let figure = body == "–" || body == "<0.01" || body.trim_start_matches(['-', '≥']).parse::<f64>().is_ok();
    if figure { format!("#{end}") } else { word.to_owned() }
}

fn is_unit(word: &str) -> bool {
    let word = word.trim_end_matches([',', ';']);
    const UNITS: [&str; 10] = ["s", "ms", "µs", "ns", "%", "bit/s", "B", "B/s", "/s", "iB"];
    UNITS.contains(&word)
        || UNITS
            .iter()
            .any(|unit| word.get(..1).is_some_and(|prefix| "TGMk".contains(prefix)) && word.get(1..) == Some(unit))
        || ["KiB", "MiB", "GiB", "TiB"].contains(&word)
}

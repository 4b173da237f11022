//! The script `rerun` of a snapshot, which measures again.
//!
//! It is POSIX sh, so that it works wherever the program does, and it names nothing outside of its own folder.

use wb_model::secrets::MASK;

/// What the script does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rerun {
    /// The commands that measured, in order; they are repeated in one new run folder.
    pub commands: Vec<RerunCommand>,
    /// How the packed programs are built from the packed sources.
    pub rebuild: Option<Rebuild>,
}

/// A recorded command, prepared to be repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RerunCommand {
    /// The names of the command: `run`, or several words.
    pub names: Vec<String>,
    /// Options before the recorded arguments; secrets masked in them are not needed.
    pub options: Vec<RerunWord>,
    /// The recorded arguments, without options that name the run folder or other places of the first machine.
    pub arguments: Vec<RerunWord>,
    /// Environment variables with secrets; each that is set is declared as a secret again.
    pub secret_variables: Vec<String>,
}

/// An argument of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RerunWord {
    /// A text.
    Text(String),
    /// A path in the archive, after a text.
    Packed {
        /// The text before the path: empty, or `NAME=`.
        prefix: String,
        /// The path.
        path: String,
    },
    /// The new run folder.
    RunFolder,
}

/// How the packed programs are built from the packed sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    /// The command, which runs in `sources/`.
    pub command: Vec<String>,
    /// The programs: each one's path below `sources/` where the build leaves it, if known, and its path in the archive.
    pub programs: Vec<(Option<String>, String)>,
}

impl Rerun {
    /// The text of the script.
    pub fn script(&self) -> String {
        let commands: String = self.commands.iter().map(RerunCommand::script).collect();
        let rebuild = self.rebuild.as_ref().map_or_else(
            || "fail 'nothing to rebuild: the run recorded no sources with a build command'".to_owned(),
            Rebuild::script,
        );
        // What is inserted is not searched again.
        let (before, after) = SCRIPT.split_once("@REBUILD@").unwrap_or((SCRIPT, ""));
        let (between, after) = after.split_once("@COMMANDS@").unwrap_or((after, ""));
        let commands = commands.trim_end();
        [before.to_owned(), rebuild, between.replace("@MASK@", MASK), commands.to_owned(), after.to_owned()].concat()
    }
}

impl RerunCommand {
    fn script(&self) -> String {
        let join = |words: &[RerunWord]| words.iter().map(|word| format!(" {}", word.script())).collect::<String>();
        let secrets = self.secret_variables.iter().map(|name| {
            let option = format!("--secret-from {}", shell_words::quote(&format!("env:{name}")));
            format!("[ -z \"${{{name}+set}}\" ] || set -- {option} \"$@\"\n")
        });
        let names = self.names.iter().map(|name| format!(" {}", shell_words::quote(name))).collect::<String>();
        format!(
            "set --{}\nrefuse_masked \"$@\"\n{}measure{names}{} \"$@\"\n\n",
            join(&self.arguments),
            secrets.collect::<String>(),
            join(&self.options)
        )
    }
}

impl RerunWord {
    fn script(&self) -> String {
        match self {
            Self::Text(text) => shell_words::quote(text).into_owned(),
            Self::Packed { prefix, path } if prefix.is_empty() => format!("\"$here\"/{}", shell_words::quote(path)),
            Self::Packed { prefix, path } => {
                format!("{}\"$here\"/{}", shell_words::quote(prefix), shell_words::quote(path))
            }
            Self::RunFolder => "\"$into\"".to_owned(),
        }
    }
}

impl Rebuild {
    fn script(&self) -> String {
        let command = shell_words::join(&self.command);
        let install = self.programs.iter().map(|(built, packed)| match built {
            Some(built) => {
                format!("    install_program {} {}\n", shell_words::quote(built), shell_words::quote(packed))
            }
            None => format!("    require_program {}\n", shell_words::quote(packed)),
        });
        format!(
            "(cd sources && WEIGHBRIDGE_PROGRAMS=\"$here/programs\" {command}) ||\n        \
             fail 'the build failed: nothing was measured'\n{}",
            install.collect::<String>()
        )
        .trim_end()
        .to_owned()
    }
}

/// The script, with places for what differs.
const SCRIPT: &str = r#"#!/bin/sh
# Measures again what the run in `run` measured, with the programs in this folder, and compares both runs.
# Written by `weighbridge snapshot`.
set -u

usage() {
    cat <<'END'
Usage: ./rerun [--rebuild]

Measures again what `run` measured, into the new folder `rerun-1` (or the next number), and compares both.

  --rebuild  build the programs from `sources` first

exit status: 0 measured and compared, whatever the comparison found; otherwise that of the command that failed
END
}

fail() {
    echo "error: $1" >&2
    exit 1
}

install_program() {
    if [ -e "sources/$1" ]; then
        rm -rf "$2" && mkdir -p "$(dirname "$2")" && cp -pR "sources/$1" "$2" || fail "cannot copy sources/$1"
    fi
    require_program "$2"
}

require_program() {
    [ -e "$1" ] || fail "the build did not write $1"
}

rebuild() {
    mkdir -p programs
    @REBUILD@
}

# Secrets are masked in the record of a command, and cannot be repeated.
refuse_masked() {
    case "$*" in
        *'@MASK@'*)
            echo "error: a secret of the recorded command is masked: @MASK@" >&2
            echo "help: replace it in this script, or pass the secret in an environment variable" >&2
            exit 1
            ;;
    esac
}

# Runs a command. Something that could not be measured (3) does not prevent the comparison; neither does a difference
# between variants (2), nor that an earlier command has measured everything (4).
measure() {
    code=0
    bin/weighbridge "$@" || code=$?
    case $code in
        0 | 2) ;;
        3) status=3 ;;
        4) [ -e "$into/run.json" ] || exit 4 ;;
        *) exit "$code" ;;
    esac
}

here=$(cd "$(dirname "$0")" && pwd) || exit 1
cd "$here" || exit 1
case "${1-}" in
    '') ;;
    --rebuild) rebuild ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 1 ;;
esac
PATH=$here/programs:$PATH
export PATH
number=1
while [ -e "rerun-$number" ]; do number=$((number + 1)); done
into=rerun-$number
status=0

@COMMANDS@

code=0
bin/weighbridge compare run "$into" || code=$?
[ "$code" != 1 ] || status=1
exit "$status"
"#;

#[cfg(test)]
mod tests {
    use std::process::{Command, Output};

    use super::*;

    fn text(text: &str) -> RerunWord {
        RerunWord::Text(text.to_owned())
    }

    /// A snapshot whose program prints its arguments, and exits with the number in the file `status`.
    struct FakeSnapshot(tempfile::TempDir);

    impl FakeSnapshot {
        fn new(rerun: &Rerun) -> Self {
            use std::os::unix::fs::PermissionsExt;
            let snapshot = Self(tempfile::tempdir().unwrap());
            std::fs::create_dir_all(snapshot.0.path().join("bin")).unwrap();
            std::fs::create_dir_all(snapshot.0.path().join("sources")).unwrap();
            let program = "#!/bin/sh\nprintf '<%s>' \"$@\"; echo\n\
                [ \"$1\" = compare ] && exit 2\n[ -e status ] && exit \"$(cat status)\"\nexit 0\n";
            for (name, content) in [("bin/weighbridge", program), ("rerun", &*rerun.script())] {
                let path = snapshot.0.path().join(name);
                std::fs::write(&path, content).unwrap();
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
            snapshot
        }

        fn rerun(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
            let mut command = Command::new(self.0.path().join("rerun"));
            let Output { status, stdout, stderr } =
                command.args(arguments).envs(environment.iter().copied()).current_dir("/").output().unwrap();
            let output = String::from_utf8(stdout).unwrap() + &String::from_utf8(stderr).unwrap();
            (status.code(), output.replace(&*self.0.path().canonicalize().unwrap().display().to_string(), "HERE"))
        }
    }

    fn rerun() -> Rerun {
        let command = RerunCommand {
            names: vec!["run".to_owned()],
            options: vec![text("--into"), RerunWord::RunFolder],
            arguments: vec![
                text("it's $HOME:*"),
                RerunWord::Packed { prefix: String::new(), path: "inputs/plan.toml".to_owned() },
            ],
            secret_variables: vec!["MY_WORD".to_owned()],
        };
        Rerun { commands: vec![command], rebuild: None }
    }

    #[test]
    fn the_recorded_command_is_repeated_and_compared() {
        let snapshot = FakeSnapshot::new(&rerun());
        let first = snapshot.rerun(&[], &[]);
        let compared = "<compare><run><rerun-1>\n";
        assert_eq!(
            first,
            (Some(0), format!("<run><--into><rerun-1><it's $HOME:*><HERE/inputs/plan.toml>\n{compared}"))
        );
        std::fs::create_dir(snapshot.0.path().join("rerun-1")).unwrap();
        let (_, second) = snapshot.rerun(&[], &[("MY_WORD", "x")]);
        assert!(second.starts_with("<run><--into><rerun-2><--secret-from><env:MY_WORD><it's"), "{second}");
    }

    #[test]
    fn the_exit_status_is_that_of_the_measurement() {
        let snapshot = FakeSnapshot::new(&rerun());
        for (status, compares) in [(0, true), (1, false), (2, true), (3, true), (4, false), (130, false)] {
            std::fs::write(snapshot.0.path().join("status"), status.to_string()).unwrap();
            let (code, output) = snapshot.rerun(&[], &[]);
            assert_eq!(output.contains("<compare>"), compares, "{status}");
            assert_eq!(code, Some(if status == 2 { 0 } else { status }), "{output}");
        }
    }

    #[test]
    fn a_masked_secret_is_an_error() {
        let mut masked = rerun();
        masked.commands[0].arguments.push(text("--password=***"));
        let (code, output) = FakeSnapshot::new(&masked).rerun(&[], &[]);
        assert_eq!(code, Some(1));
        assert!(output.starts_with("error: a secret of the recorded command is masked: ***\n"), "{output}");
        let mut harmless = rerun();
        harmless.commands[0].options.push(text("note=***"));
        assert_eq!(FakeSnapshot::new(&harmless).rerun(&[], &[]).0, Some(0));
    }

    #[test]
    fn programs_are_rebuilt_on_request() {
        let (code, output) = FakeSnapshot::new(&rerun()).rerun(&["--rebuild"], &[]);
        assert_eq!(
            (code, output.as_str()),
            (Some(1), "error: nothing to rebuild: the run recorded no sources with a build command\n")
        );
        let build = "mkdir -p out && echo built > out/x && echo also > \"$WEIGHBRIDGE_PROGRAMS/y\"";
        let rebuild = |command: &str| Rebuild {
            command: ["sh", "-c", command].map(str::to_owned).into(),
            programs: vec![(Some("out/x".to_owned()), "programs/x".to_owned()), (None, "programs/y".to_owned())],
        };
        let snapshot = FakeSnapshot::new(&Rerun { rebuild: Some(rebuild(build)), ..rerun() });
        let (code, output) = snapshot.rerun(&["--rebuild"], &[]);
        assert_eq!(code, Some(0), "{output}");
        assert_eq!(std::fs::read_to_string(snapshot.0.path().join("programs/x")).unwrap(), "built\n");
        let failing = FakeSnapshot::new(&Rerun { rebuild: Some(rebuild("exit 3")), ..rerun() });
        assert_eq!(
            failing.rerun(&["--rebuild"], &[]),
            (Some(1), "error: the build failed: nothing was measured\n".to_owned())
        );
        let silent = FakeSnapshot::new(&Rerun { rebuild: Some(rebuild("true")), ..rerun() });
        let (_, output) = silent.rerun(&["--rebuild"], &[]);
        assert_eq!(output, "error: the build did not write programs/x\n");
    }

    #[test]
    fn other_arguments_are_refused() {
        let (code, output) = FakeSnapshot::new(&rerun()).rerun(&["--help"], &[]);
        assert!(code == Some(0) && output.starts_with("Usage: ./rerun [--rebuild]"), "{output}");
        assert_eq!(FakeSnapshot::new(&rerun()).rerun(&["again"], &[]).0, Some(1));
    }
}

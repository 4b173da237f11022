//! The script `rerun` of a snapshot, which measures again.
//!
//! It is POSIX sh, so that it works wherever the program does, and it names nothing outside of its own folder.

use wb_model::secrets::MASK;

/// What the script does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rerun {
    /// In order; they are repeated in one new run folder.
    pub commands: Vec<RerunCommand>,
    pub rebuild: Option<Rebuild>,
    /// Packed files in which secrets are masked: they would be measured with the mask.
    pub masked_files: Vec<String>,
}

/// A recorded command, prepared to be repeated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RerunCommand {
    /// `run`, or several words.
    pub names: Vec<String>,
    /// Options before the recorded arguments; secrets masked in them are not needed.
    pub options: Vec<RerunWord>,
    /// The recorded arguments, without options that name the run folder or other places of the first machine.
    pub arguments: Vec<RerunWord>,
    /// Environment variables with secrets; each that is set and not empty is declared as a secret again.
    pub secret_variables: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RerunWord {
    Text(String),
    /// A path in the archive, after a text.
    Packed {
        /// Empty, or `NAME=`.
        prefix: String,
        path: String,
    },
    RunFolder,
}

/// How the packed programs are built from the packed sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rebuild {
    /// Runs in `sources/`.
    pub command: Vec<String>,
    pub programs: Vec<RebuiltProgram>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuiltProgram {
    /// In the archive.
    pub packed: String,
    /// The path below `sources/` where the build leaves it, if known.
    pub built: Option<String>,
    /// Whether that path is a packed source, which needs no build.
    pub is_source: bool,
}

impl Rerun {
    pub fn script(&self) -> String {
        let commands: String = self.commands.iter().map(RerunCommand::script).collect();
        let masked = if self.masked_files.is_empty() {
            String::new()
        } else {
            format!("refuse_masked_files {}\n", shell_words::join(&self.masked_files))
        };
        let insertions = [
            ("@PROGRAMS@", self.rebuild.as_ref().map_or_else(|| "    :".to_owned(), Rebuild::list_programs)),
            ("@BUILD@", self.rebuild.as_ref().map_or_else(|| NO_BUILD.to_owned(), Rebuild::build)),
            ("@MASKED_FILES@\n", masked),
            ("@COMMANDS@", commands.trim_end().to_owned()),
        ];
        // What is inserted is not searched again.
        let (mut script, mut rest) = (String::new(), SCRIPT);
        for (place, text) in insertions {
            let (before, after) = rest.split_once(place).unwrap_or((rest, ""));
            script.extend([&before.replace("@MASK@", MASK), &*text]);
            rest = after;
        }
        script + rest
    }
}

impl RerunCommand {
    fn script(&self) -> String {
        let join = |words: &[RerunWord]| words.iter().map(|word| format!(" {}", word.script())).collect::<String>();
        let secrets = self.secret_variables.iter().map(|name| {
            let option = format!("--secret-from {}", shell_words::quote(&format!("env:{name}")));
            format!("[ -z \"${{{name}-}}\" ] || set -- {option} \"$@\"\n")
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
    /// A call of the function `$1` for each program, with its paths.
    fn list_programs(&self) -> String {
        let call = |program: &RebuiltProgram| {
            let source = if program.is_source { "source" } else { "" };
            let words = [&program.packed, program.built.as_deref().unwrap_or_default(), source];
            format!("    \"$1\" {}", shell_words::join(words))
        };
        if self.programs.is_empty() {
            "    :".to_owned()
        } else {
            self.programs.iter().map(call).collect::<Vec<_>>().join("\n")
        }
    }

    fn build(&self) -> String {
        let command = shell_words::join(&self.command);
        format!("(cd sources && WEIGHBRIDGE_PROGRAMS=\"$here/programs\" {command})")
    }
}

const NO_BUILD: &str = "fail 'nothing to rebuild: the run recorded no sources with a build command'";

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

# Calls a function for each program that is built, with its path here, its path below `sources` if the build leaves it
# there, and `source` if the build does not write that.
each_program() {
@PROGRAMS@
}

# A program that is in place while its build writes nothing would be taken for the new one.
back_up() {
    if [ -n "$2" ] && [ -z "$3" ]; then
        rm -rf "sources/$2" || fail "cannot remove sources/$2"
    fi
    [ -e "$1" ] || return 0
    mkdir -p "programs.backup/$(dirname "$1")" && mv "$1" "programs.backup/$1" || fail "cannot move $1"
}

put_back() {
    [ -e "programs.backup/$1" ] || return 0
    rm -rf "$1" && mkdir -p "$(dirname "$1")" && mv "programs.backup/$1" "$1" || fail "cannot restore $1"
}

install_program() {
    if [ -n "$2" ] && [ -e "sources/$2" ]; then
        rm -rf "$1" && mkdir -p "$(dirname "$1")" && cp -pR "sources/$2" "$1" || fail "cannot copy sources/$2"
    fi
    [ -e "$1" ] || fail "the build did not write $1"
}

restore_programs() {
    each_program put_back
    rm -rf programs.backup
}

rebuild() {
    trap restore_programs EXIT
    trap 'exit 130' INT
    trap 'exit 143' HUP TERM
    mkdir -p programs
    each_program back_up
    @BUILD@ || fail 'the build failed: nothing was measured'
    each_program install_program
    trap - EXIT INT HUP TERM
    rm -rf programs.backup
}

# Secrets are masked in the record of a run, and cannot be repeated.
refuse_masked() {
    case "$*" in
        *'@MASK@'*)
            echo "error: a secret of the recorded command is masked: @MASK@" >&2
            echo "help: replace it in this script, or pass the secret in an environment variable" >&2
            exit 1
            ;;
    esac
}

refuse_masked_files() {
    for file in "$@"; do
        if grep -v '^[[:space:]]*#' "$file" | grep -qF '@MASK@'; then
            echo "error: a secret in $file is masked: @MASK@" >&2
            echo "help: replace it in this file" >&2
            exit 1
        fi
    done
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

here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd) || exit 1
cd "$here" || exit 1
case $here in
    *:*) fail "invalid folder $here: expected a path without \`:\`, which separates the folders of PATH" ;;
esac
# A build that was killed.
[ ! -d programs.backup ] || restore_programs
case "${1-}" in
    '') ;;
    --rebuild) rebuild ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; exit 1 ;;
esac
@MASKED_FILES@
PATH=$here/programs:$PATH
export PATH
number=1
while [ -e "rerun-$number" ]; do number=$((number + 1)); done
into=rerun-$number
status=0

@COMMANDS@

code=0
bin/weighbridge compare run "$into" || code=$?
case $code in
    0 | 2 | 3 | 4) ;;
    *) status=$code ;;
esac
exit "$status"
"#;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output, Stdio};

    use super::*;

    fn text(text: &str) -> RerunWord {
        RerunWord::Text(text.to_owned())
    }

    /// A snapshot whose program prints its arguments, and exits with the number in the file `status`.
    struct FakeSnapshot(tempfile::TempDir);

    impl FakeSnapshot {
        fn new(rerun: &Rerun) -> Self {
            let folder = tempfile::tempdir().unwrap();
            Self::create(folder.path(), rerun);
            Self(folder)
        }

        fn create(folder: &Path, rerun: &Rerun) -> PathBuf {
            std::fs::create_dir_all(folder.join("bin")).unwrap();
            std::fs::create_dir_all(folder.join("sources")).unwrap();
            let program = "#!/bin/sh\nprintf '<%s>' \"$@\"; echo\n\
                [ \"$1\" = compare ] && exit \"$(cat compared 2>/dev/null || echo 2)\"\n[ -e status ] && exit \"$(cat status)\"\nexit 0\n";
            for (name, content) in [("bin/weighbridge", program), ("rerun", &*rerun.script())] {
                Self::install(&folder.join(name), content);
            }
            folder.to_owned()
        }

        /// Writes a program in another process: a descriptor of this one is open for a moment in the children of other
        /// tests, too, and a program that is open for writing cannot be started.
        fn install(path: &Path, content: &str) {
            use std::io::Write;
            let mut child = Command::new("install")
                .args(["-m", "755", "/dev/stdin"])
                .arg(path)
                .stdin(Stdio::piped())
                .spawn()
                .unwrap();
            child.stdin.take().unwrap().write_all(content.as_bytes()).unwrap();
            assert!(child.wait().unwrap().success());
        }

        fn path(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn rerun(&self, arguments: &[&str], environment: &[(&str, &str)]) -> (Option<i32>, String) {
            let mut command = Command::new(self.path("rerun"));
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
        Rerun { commands: vec![command], ..Rerun::default() }
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
        std::fs::create_dir(snapshot.path("rerun-1")).unwrap();
        let (_, second) = snapshot.rerun(&[], &[("MY_WORD", "x")]);
        assert!(second.starts_with("<run><--into><rerun-2><--secret-from><env:MY_WORD><it's"), "{second}");
    }

    #[test]
    fn the_exit_status_is_that_of_the_measurement() {
        let snapshot = FakeSnapshot::new(&rerun());
        for (status, compares) in [(0, true), (1, false), (2, true), (3, true), (4, false), (130, false)] {
            std::fs::write(snapshot.path("status"), status.to_string()).unwrap();
            let (code, output) = snapshot.rerun(&[], &[]);
            assert_eq!(output.contains("<compare>"), compares, "{status}");
            assert_eq!(code, Some(if status == 2 { 0 } else { status }), "{output}");
        }
    }

    #[test]
    fn a_comparison_that_could_not_run_is_a_failure() {
        let snapshot = FakeSnapshot::new(&rerun());
        for (compared, status) in [(0, 0), (2, 0), (3, 0), (1, 1), (126, 126), (127, 127), (139, 139)] {
            std::fs::write(snapshot.path("compared"), compared.to_string()).unwrap();
            assert_eq!(snapshot.rerun(&[], &[]).0, Some(status), "{compared}");
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
    fn a_masked_secret_in_a_file_is_an_error_until_it_is_replaced() {
        let masked_files = vec!["inputs/my plan.toml".to_owned()];
        let snapshot = FakeSnapshot::new(&Rerun { masked_files, ..rerun() });
        std::fs::create_dir(snapshot.path("inputs")).unwrap();
        std::fs::write(snapshot.path("inputs/my plan.toml"), "# ***\nenv = [\"TOKEN=***\"]\n").unwrap();
        let expected = "error: a secret in inputs/my plan.toml is masked: ***\nhelp: replace it in this file\n";
        assert_eq!(snapshot.rerun(&[], &[]), (Some(1), expected.to_owned()));
        std::fs::write(snapshot.path("inputs/my plan.toml"), "# ***\nenv = [\"TOKEN=x\"]\n").unwrap();
        assert_eq!(snapshot.rerun(&[], &[]).0, Some(0));
    }

    #[test]
    fn a_variable_that_is_set_but_empty_is_no_secret() {
        let (code, output) = FakeSnapshot::new(&rerun()).rerun(&[], &[("MY_WORD", "")]);
        assert!(code == Some(0) && !output.contains("secret-from"), "{output}");
    }

    #[test]
    fn a_search_path_of_cd_does_not_matter() {
        let snapshot = FakeSnapshot::new(&rerun());
        let (parent, name) = (snapshot.0.path().parent().unwrap(), snapshot.0.path().file_name().unwrap());
        let mut command = Command::new("sh");
        command.arg(Path::new(name).join("rerun")).current_dir(parent).env("CDPATH", parent);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    #[test]
    fn a_folder_that_cannot_be_on_the_path_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let snapshot = FakeSnapshot::create(&folder.path().join("a:b"), &rerun());
        let output = Command::new(snapshot.join("rerun")).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(1) && error.contains("a:b: expected a path without `:`"), "{error}");
    }

    /// A snapshot whose build leaves one program in `sources/out`, and writes the other one to its place.
    fn snapshot_with_build(command: &str) -> FakeSnapshot {
        let program = |packed: &str, built: Option<&str>| RebuiltProgram {
            packed: packed.to_owned(),
            built: built.map(str::to_owned),
            is_source: false,
        };
        let rebuild = Rebuild {
            command: ["sh", "-c", command].map(str::to_owned).into(),
            programs: vec![program("programs/x", Some("out/x")), program("programs/of y/y", None)],
        };
        let snapshot = FakeSnapshot::new(&Rerun { rebuild: Some(rebuild), ..rerun() });
        std::fs::create_dir_all(snapshot.path("programs/of y")).unwrap();
        std::fs::write(snapshot.path("programs/x"), "packed x").unwrap();
        std::fs::write(snapshot.path("programs/of y/y"), "packed y").unwrap();
        snapshot
    }

    fn programs(snapshot: &FakeSnapshot) -> [String; 2] {
        ["programs/x", "programs/of y/y"].map(|path| std::fs::read_to_string(snapshot.path(path)).unwrap())
    }

    #[test]
    fn programs_are_rebuilt_on_request() {
        let (code, output) = FakeSnapshot::new(&rerun()).rerun(&["--rebuild"], &[]);
        assert_eq!(
            (code, output.as_str()),
            (Some(1), "error: nothing to rebuild: the run recorded no sources with a build command\n")
        );
        let snapshot =
            snapshot_with_build("mkdir -p out && printf new > out/x && printf also > \"$WEIGHBRIDGE_PROGRAMS/of y/y\"");
        let (code, output) = snapshot.rerun(&["--rebuild"], &[]);
        assert_eq!(code, Some(0), "{output}");
        assert_eq!(programs(&snapshot), ["new", "also"]);
        assert!(!snapshot.path("programs.backup").exists());
    }

    #[test]
    fn a_build_that_fails_or_writes_nothing_measures_nothing_and_changes_nothing() {
        let only_first = "mkdir -p out && printf new > out/x";
        for (build, error) in [
            ("exit 3", "error: the build failed: nothing was measured\n"),
            ("true", "error: the build did not write programs/x\n"),
            (only_first, "error: the build did not write programs/of y/y\n"),
            ("kill -TERM $PPID; sleep 0.1", ""),
        ] {
            let snapshot = snapshot_with_build(build);
            // The result of an earlier build.
            std::fs::create_dir_all(snapshot.path("sources/out")).unwrap();
            std::fs::write(snapshot.path("sources/out/x"), "old").unwrap();
            let (code, output) = snapshot.rerun(&["--rebuild"], &[]);
            assert!(code != Some(0) && output == error, "{build}: {code:?} {output}");
            assert_eq!(programs(&snapshot), ["packed x", "packed y"], "{build}");
        }
    }

    #[test]
    fn programs_that_a_killed_build_backed_up_are_restored() {
        let snapshot = snapshot_with_build("true");
        std::fs::create_dir_all(snapshot.path("programs.backup/programs")).unwrap();
        std::fs::rename(snapshot.path("programs/x"), snapshot.path("programs.backup/programs/x")).unwrap();
        assert_eq!(snapshot.rerun(&[], &[]).0, Some(0));
        assert_eq!(programs(&snapshot), ["packed x", "packed y"]);
    }

    #[test]
    fn other_arguments_are_refused() {
        let (code, output) = FakeSnapshot::new(&rerun()).rerun(&["--help"], &[]);
        assert!(code == Some(0) && output.starts_with("Usage: ./rerun [--rebuild]"), "{output}");
        assert_eq!(FakeSnapshot::new(&rerun()).rerun(&["again"], &[]).0, Some(1));
    }
}

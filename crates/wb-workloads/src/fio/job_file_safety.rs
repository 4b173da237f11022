//! What a user's job file may change or destroy that does not belong to the test. If there is any, the file runs only
//! with `allow-destroy=true`.

use super::job::TestType;
use super::job_file_settings::parse_pattern;
use super::job_template::{JobSection, jobs};

/// Options other than `filename` by which fio reads or writes files, or runs commands. What fio does with a file
/// depends on a hundred options, so this list is no safeguard by itself: on a file that was there before, fio also runs
/// with `--readonly`.
const FILE_OPTIONS: [&str; 8] = [
    "directory",
    "filename_format",
    "opendir",
    "read_iolog",
    "replay_redirect",
    "merge_blktrace_file",
    "exec_prerun",
    "exec_postrun",
];

/// Options whose values have slashes and are no paths, or paths that are only read. Any other with a slash may lead to
/// a file that fio writes: logs, `aux_path`, the memory of `mem=mmap:PATH`, the `uri` of an engine.
const OPTIONS_WITH_SLASHES: [&str; 7] =
    ["filename", "bssplit", "random_distribution", "description", "buffer_pattern", "verify_pattern", "ioengine"];

/// Engines that only use the files of their jobs on the machine itself. Others may write to servers, or run programs.
const LOCAL_ENGINES: [&str; 29] = [
    "$@",
    "sync",
    "psync",
    "vsync",
    "pvsync",
    "pvsync2",
    "libaio",
    "posixaio",
    "mmap",
    "io_uring",
    "io_uring_cmd",
    "splice",
    "sg",
    "null",
    "cpuio",
    "libpmem",
    "dev-dax",
    "mtd",
    "libzbc",
    "xnvme",
    "filecreate",
    "filedelete",
    "filestat",
    "dircreate",
    "dirdelete",
    "dirstat",
    "ftruncate",
    "falloc",
    "e4defrag",
];

/// Flags by which fio removes the files of a job.
const REMOVING_FLAGS: [&str; 2] = ["unlink", "unlink_each_loop"];

/// Engines that create, remove, resize or move files, whatever the access pattern is.
const CHANGING_ENGINES: [&str; 8] =
    ["filecreate", "filedelete", "dircreate", "dirdelete", "ftruncate", "falloc", "e4defrag", "exec"];

/// What a job file names besides the targets, if it may overwrite it. A job without `filename` uses files in the
/// working folder, which is the test's own, named after its section; a name that is a path leads elsewhere, and fio
/// takes one of a device for the file itself.
pub(super) fn own_files(template: &str) -> Option<String> {
    jobs(template).iter().find_map(|job| {
        let leads_elsewhere =
            |option: &&String| job.options[*option].contains('/') && !OPTIONS_WITH_SLASHES.contains(&option.as_str());
        let other_file =
            job.options.get("filename").filter(|names| split_list(names).iter().any(|name| name != "$target"));
        let option = |name: &str, value: &str| format!("`{name}={value}`");
        if let Some(file) = job.options.get("include") {
            return Some(format!("`include {file}`"));
        }
        if let Some(value) = other_file {
            return Some(option("filename", value));
        }
        if !job.options.contains_key("filename") && (job.name.contains('/') || job.name.contains("$target")) {
            return Some(format!("the job `[{}]` without `filename`", job.name));
        }
        let named = FILE_OPTIONS.into_iter().find(|name| job.options.contains_key(*name));
        let elsewhere = || job.options.keys().find(leads_elsewhere).map(String::as_str);
        let engine = || job.options.get("ioengine").filter(|engine| !is_local(engine)).map(|_| "ioengine");
        named.or_else(elsewhere).or_else(engine).map(|name| option(name, &job.options[name]))
    })
}

/// Paths that a job file names itself and writes to, if `$@` as an access pattern is `test_type`; without relative
/// ones, which are in the working folder, the test's own.
pub(super) fn written_files(template: &str, test_type: Option<TestType>) -> Vec<String> {
    let jobs = jobs(template);
    let is_writing = |job: &&JobSection<'_>| {
        let pattern = match job.options.get("rw").map(String::as_str) {
            None => Some(TestType::Read),
            Some("$@") => test_type,
            // Also trims, and what only fio knows.
            Some(text) => parse_pattern(text),
        };
        pattern.is_none_or(TestType::writes) || job.options.get("ioengine").is_some_and(|engine| changes_files(engine))
    };
    let mut paths: Vec<String> = jobs.iter().filter(is_writing).flat_map(named_paths).collect();
    paths.retain(|path| path.starts_with('/') || path.contains('$'));
    paths.sort();
    paths.dedup();
    paths
}

/// The paths of a job's files except targets: those of `filename`, or its name, below each folder of `directory`.
fn named_paths(job: &JobSection<'_>) -> Vec<String> {
    let names = job.options.get("filename").map_or_else(|| vec![job.name.to_owned()], |names| split_list(names));
    let folders = job.options.get("directory").map(|folders| split_list(folders)).unwrap_or_default();
    let names = names.into_iter().filter(|name| name != "$target");
    match folders.as_slice() {
        [] => names.collect(),
        folders => names.flat_map(|name| folders.iter().map(move |folder| format!("{folder}/{name}"))).collect(),
    }
}

/// Splits a list at its colons, except those after a backslash.
fn split_list(list: &str) -> Vec<String> {
    const COLON: &str = "\0";
    list.replace("\\:", COLON).split(':').map(|item| item.trim().replace(COLON, ":")).collect()
}

/// What a job file does to files that exist, other than reading and writing them.
pub(super) fn file_changes(template: &str) -> Option<String> {
    jobs(template).iter().find_map(|job| {
        let removes = |job: &JobSection<'_>| REMOVING_FLAGS.into_iter().find(|flag| job.is_set(flag));
        let engine = job.options.get("ioengine").filter(|engine| changes_files(engine));
        removes(job).map(|flag| format!("`{flag}`")).or_else(|| engine.map(|engine| format!("`ioengine={engine}`")))
    })
}

fn is_local(ioengine: &str) -> bool {
    LOCAL_ENGINES.contains(&ioengine)
}

/// Whether an engine does more to files than to read and write them; unknown of an engine that the user wrote.
pub(super) fn changes_files(ioengine: &str) -> bool {
    CHANGING_ENGINES.contains(&ioengine) || ioengine.starts_with("external")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_other_than_targets_are_detected() {
        for harmless in [
            "[global]\nbs=4k\n[job-$target]\nfilename=$target\n",
            "[job]\nrw=write\nsize=1m\n",
            "[job]\nwrite_bw_log=bw\n",
            "[job]\nbssplit=4k/50:8k/50\nioengine=io_uring\n",
            "filename=$target\n[job-$target]\nfilename=$target\nmem=mmap\n",
            "",
        ] {
            assert_eq!(own_files(harmless), None, "{harmless}");
        }
        for (template, named) in [
            ("[x]\nfilename=/dev/sda\n", "`filename=/dev/sda`"),
            ("[x]\nfilename=a\n", "`filename=a`"),
            ("[x-$target]\nfilename=$target:/data/other\n", "`filename=$target:/data/other`"),
            ("directory = /data\n[x]\n", "`directory=/data`"),
            ("[/dev/sda]\nrw=write\n", "the job `[/dev/sda]` without `filename`"),
            ("[$target]\nrw=write\n", "the job `[$target]` without `filename`"),
            ("[globals]\nfilename=/dev/sda\n[x]\n", "`filename=/dev/sda`"),
            ("[x]\nfilename=/dev/sda\nfilename=$target\n", "`filename=/dev/sda:$target`"),
            ("filename=/dev/sda\n[x]\nfilename=$target\n", "`filename=/dev/sda:$target`"),
            ("[x]\ninclude other.fio\n", "`include other.fio`"),
            ("[x]\ninclude\tother.fio\n", "`include other.fio`"),
            ("[x]\nmem=mmap:/data/x\n", "`mem=mmap:/data/x`"),
            ("[x]\nexec_prerun=rm x\n", "`exec_prerun=rm x`"),
            ("[x]\nioengine=exec\nprogram=rm\n", "`ioengine=exec`"),
            ("[x]\nioengine=nbd\n", "`ioengine=nbd`"),
            ("[x]\nuri=nbd+unix:///x\n", "`uri=nbd+unix:///x`"),
            ("[x]\nread_iolog=trace\n", "`read_iolog=trace`"),
            ("[x]\nwrite_bw_log=/etc/x\n", "`write_bw_log=/etc/x`"),
        ] {
            assert_eq!(own_files(template).as_deref(), Some(named), "{template}");
        }
    }

    #[test]
    fn files_that_are_written_are_found() {
        for (template, expected) in [
            ("[x]\nrw=write\nfilename=/dev/sda\n", &["/dev/sda"][..]),
            ("[x]\nfilename=/dev/sda\n", &[]),
            ("[x]\nrw=$@\nfilename=$target:/dev/a\\:b:/c\n", &["/c", "/dev/a:b"]),
            ("[x]\nrw=trim\nfilename=/dev/sda\n[y]\nrw=randrw:4\nfilename=/dev/sda\n", &["/dev/sda"]),
            ("[/dev/sda]\nrw=write\n", &["/dev/sda"]),
            ("directory=/dev:/data\n[x]\nrw=write\nfilename=sda\n", &["/data/sda", "/dev/sda"]),
            ("[x]\nioengine=filedelete\nfilename=/data/x\n", &["/data/x"]),
            ("[x]\nrw=write\nfilename=${DEVICE}\n", &["${DEVICE}"]),
            ("[x]\nrw=write\nfilename=own\n[y]\nrw=write\n", &[]),
        ] {
            assert_eq!(written_files(template, Some(TestType::RandWrite)), expected, "{template}");
        }
        assert!(written_files("[x]\nrw=$@\nfilename=/dev/sda\n", Some(TestType::RandRead)).is_empty());
    }

    #[test]
    fn changes_other_than_writing_are_detected() {
        assert_eq!(file_changes("[x]\nunlink=0\nioengine=libaio\n"), None);
        assert_eq!(file_changes("unlink=1\n[x]\n").as_deref(), Some("`unlink`"));
        assert_eq!(file_changes("[x]\nunlink_each_loop\n").as_deref(), Some("`unlink_each_loop`"));
        assert_eq!(file_changes("[x]\nioengine=filedelete\n").as_deref(), Some("`ioengine=filedelete`"));
        assert!(changes_files("external:/x.so") && !changes_files("io_uring"));
    }

    proptest::proptest! {
        #[test]
        fn no_template_panics(text: String) {
            own_files(&text);
            written_files(&text, None);
            file_changes(&text);
        }
    }
}

//! What a user's job file may change or destroy that does not belong to the test. It then runs only with
//! `allow-destroy=true`.

use super::job_template::{JobSection, jobs};

/// Options by which fio reads or writes files other than those of `filename`.
const FILE_OPTIONS: [&str; 6] =
    ["directory", "filename_format", "opendir", "read_iolog", "replay_redirect", "merge_blktrace_file"];

/// Options by which fio writes logs; the value is the start of a path.
const LOG_OPTIONS: [&str; 5] = ["write_bw_log", "write_lat_log", "write_iops_log", "write_iolog", "aux_path"];

/// Flags by which fio removes the files of a job.
const REMOVING_FLAGS: [&str; 2] = ["unlink", "unlink_each_loop"];

/// Engines that create, remove, resize or move files, whatever the access pattern is.
const CHANGING_ENGINES: [&str; 8] =
    ["filecreate", "filedelete", "dircreate", "dirdelete", "ftruncate", "falloc", "e4defrag", "exec"];

/// What a job file names besides the targets, if it may overwrite it.
///
/// A job without `filename` uses files in the working folder, which is the test's own, named after its section; a name
/// that is a path leads elsewhere, and fio takes one of a device for the file itself.
pub(super) fn own_files(template: &str) -> Option<String> {
    jobs(template).iter().find_map(|job| {
        let leads_elsewhere = |option: &&&str| job.options.get(**option).is_some_and(|value| value.contains('/'));
        let other_file = job.options.get("filename").filter(|value| *value != "$target");
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
        let named = FILE_OPTIONS.iter().find(|name| job.options.contains_key(**name));
        named.or_else(|| LOG_OPTIONS.iter().find(leads_elsewhere)).map(|name| option(name, &job.options[*name]))
    })
}

/// What a job file does to files that exist, other than reading and writing them.
pub(super) fn file_changes(template: &str) -> Option<String> {
    jobs(template).iter().find_map(|job| {
        let removes = |job: &JobSection<'_>| REMOVING_FLAGS.into_iter().find(|flag| job.is_set(flag));
        let engine = job.options.get("ioengine").filter(|engine| changes_files(engine));
        removes(job).map(|flag| format!("`{flag}`")).or_else(|| engine.map(|engine| format!("`ioengine={engine}`")))
    })
}

/// Whether an engine does more to files than to read and write them; it is unknown of one that the user wrote.
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
            ("[x]\ninclude other.fio\n", "`include other.fio`"),
            ("[x]\nread_iolog=trace\n", "`read_iolog=trace`"),
            ("[x]\nwrite_bw_log=/etc/x\n", "`write_bw_log=/etc/x`"),
        ] {
            assert_eq!(own_files(template).as_deref(), Some(named), "{template}");
        }
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
            file_changes(&text);
        }
    }
}

//! Replaces the RAM disk of run-perf's `fio-libblkio` by a scratch file in memory.
//!
//! run-perf exports `/dev/ram0`, a RAM disk of 1 GiB that it creates with `modprobe brd`. The file is removed even if a
//! run is killed.

use serde_json::{Map, Value};
use wb_diagnostics::Diagnostic;

use crate::test::value_text;

pub(crate) const TEST_NAME: &str = "fio-libblkio";

const SETUP_KEY: &str = "__SETUP_RAMDISK__";
const SERVER_KEY: &str = "__STORAGE_DAEMON_CMD__";
const DEVICE: &str = "/dev/ram0";

/// Translates run-perf's keys into defaults of this program. Fails when a server of the user would have to be started.
pub(crate) fn translate(
    params: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<Vec<(&'static str, &'static str)>, Diagnostic> {
    if params.contains_key(SERVER_KEY) {
        return Err(Diagnostic::new(format!(
                "`{SERVER_KEY}` of `{TEST_NAME}` is not supported: qemu-storage-daemon is always started in the same way, so that \
                 its readiness and its exports are known"
            )).with_help("omit it; to measure a running server, use a job file that names its socket: `weighbridge \
                   run fio:job-file=FILE,ioengine=libblkio`"));
    }
    let makes_disk = params.remove(SETUP_KEY).is_none_or(|value| is_true(&value));
    let target = params.get("target").map(value_text).filter(|target| !target.is_empty());
    let is_device = target.is_none_or(|target| target == DEVICE);
    Ok(match (is_device, makes_disk) {
        (false, _) => Vec::new(),
        (true, false) => vec![("target", DEVICE)],
        (true, true) => {
            params.retain(|name, _| !["target", "direct"].contains(&name.as_str()));
            notes.push(format!(
                "a scratch file of 1 GiB in /dev/shm replaces the RAM disk `{DEVICE}` of `{TEST_NAME}` and is removed \
                 afterwards; file-size sets another size"
            ));
            vec![("target", "/dev/shm"), ("direct", "false"), ("file-size", "1024")]
        }
    })
}

fn is_true(value: &Value) -> bool {
    !["", "false", "0", "n", "no"].contains(&value_text(value).to_ascii_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use crate::test::translate;

    #[test]
    fn ram_disk_becomes_a_private_file_and_other_targets_stay() {
        let all = [
            r#"fio-libblkio:{"__SETUP_RAMDISK__":true,"file_size":"64","direct":1}"#,
            r#"fio-libblkio:{"target":"/dev/ram0"}"#,
            r#"fio-libblkio:{"__SETUP_RAMDISK__":false}"#,
            r#"fio-libblkio:{"__SETUP_RAMDISK__":"no","target":"/dev/nvme0n1","direct":1}"#,
        ];
        let specs = all.map(|text| {
            let test = translate(text).unwrap();
            wb_plan::spec::parse(&test.spec).unwrap();
            format!("{} ({} notes)", test.spec, test.notes.len())
        });
        insta::assert_snapshot!(specs.join("\n"), @r"
        fio-libblkio:direct=false,file-size=64m,ramptime=5,runtime=10,samples=5,target=/dev/shm (1 notes)
        fio-libblkio:direct=false,file-size=1024m,ramptime=5,runtime=10,samples=5,target=/dev/shm (1 notes)
        fio-libblkio:ramptime=5,runtime=10,samples=5,target=/dev/ram0 (0 notes)
        fio-libblkio:direct=1,ramptime=5,runtime=10,samples=5,target=/dev/nvme0n1 (0 notes)
        ");
    }

    #[test]
    fn custom_server_is_refused() {
        let error = translate(r#"fio-libblkio:{"__STORAGE_DAEMON_CMD__":"qsd %s %s"}"#).unwrap_err();
        assert!(
            error.to_string().starts_with("`__STORAGE_DAEMON_CMD__` of `fio-libblkio` is not supported"),
            "{error}"
        );
    }
}

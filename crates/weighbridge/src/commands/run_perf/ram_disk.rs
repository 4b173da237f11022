//! What run-perf's `fio-libblkio` exports: `/dev/ram0`, a RAM disk of 1 GiB that it makes with `modprobe brd`. Here a
//! private file in memory stands in for it, which is removed even where a run is killed.

use serde_json::{Map, Value};

use super::test::value_text;
use crate::error::Error;

/// The test that has it.
pub(super) const TEST_NAME: &str = "fio-libblkio";

const SETUP_KEY: &str = "__SETUP_RAMDISK__";
const SERVER_KEY: &str = "__STORAGE_DAEMON_CMD__";
const DEVICE: &str = "/dev/ram0";

/// Translates run-perf's keys; the defaults of this program's parameters that follow.
///
/// # Errors
/// Where a server of the user's is to be started.
pub(super) fn translate(
    params: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<Vec<(&'static str, &'static str)>, Error> {
    if params.contains_key(SERVER_KEY) {
        return Err(Error::Usage {
            what: format!(
                "`{SERVER_KEY}` of `{TEST_NAME}` is not supported: qemu-storage-daemon is started in one way, so that it is known \
                 when it is ready and what it exports"
            ),
            help: "leave it out; a server that runs already is measured by a job file that names its socket: `weighbridge \
                   run fio:job-file=FILE,ioengine=libblkio`"
                .to_owned(),
        });
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
                "a private file of 1 GiB in /dev/shm, which is removed after, stands in for the RAM disk `{DEVICE}` of \
                 `{TEST_NAME}`; file-size sets another size"
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
    use super::super::test::translate;

    #[test]
    fn a_ram_disk_is_a_private_file_in_memory_and_a_target_stays() {
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
    fn a_server_of_ones_own_is_refused() {
        let error = translate(r#"fio-libblkio:{"__STORAGE_DAEMON_CMD__":"qsd %s %s"}"#).unwrap_err();
        assert!(
            error.to_string().starts_with("`__STORAGE_DAEMON_CMD__` of `fio-libblkio` is not supported"),
            "{error}"
        );
    }
}

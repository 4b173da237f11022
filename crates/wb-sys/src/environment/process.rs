//! Resource limits, cgroups and environment variables of this process.

use std::collections::BTreeMap;

use wb_model::secrets;

use crate::SysRoot;
use crate::proc::cgroup;

/// The soft and hard resource limits of this process: `Max open files` is `1024 of 4096 files`.
pub fn limits(root: &SysRoot) -> BTreeMap<String, String> {
    let text = root.text("/proc/self/limits").unwrap_or_default();
    let limits = text.lines().skip(1).filter_map(|line| {
        // The table has columns of fixed width, because names contain spaces.
        let (name, rest) = line.split_at_checked(26)?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let (soft, hard) = (fields.first()?, fields.get(1)?);
        let unit = fields.get(2).map(|unit| format!(" {unit}")).unwrap_or_default();
        Some((name.trim().to_owned(), format!("{soft} of {hard}{unit}")))
    });
    limits.collect()
}

/// The cgroups of this process by hierarchy; `unified` is version 2.
pub fn cgroups(root: &SysRoot) -> BTreeMap<String, String> {
    let text = root.text("/proc/self/cgroup").unwrap_or_default();
    let groups = cgroup::memberships(&text).map(|group| {
        let hierarchy = if group.is_unified() { "unified" } else { group.controllers };
        (hierarchy.to_owned(), group.path.to_owned())
    });
    groups.collect()
}

/// Names of the recorded environment variables.
const NAMES: [&str; 8] =
    ["PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "GLIBC_TUNABLES", "GOMAXPROCS", "RAYON_NUM_THREADS"];

/// Prefixes of the names of further recorded environment variables.
const PREFIXES: [&str; 10] =
    ["LC_", "LD_", "OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "MALLOC_", "NUMEXPR_"];

/// The variables that can change the behaviour of programs: only listed names, except those that look like secrets.
pub fn variables(root: &SysRoot) -> BTreeMap<String, String> {
    let listed = |name: &str| NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    let recorded =
        environment_variables(root).into_iter().filter(|(name, _)| listed(name) && !secrets::is_secret_name(name));
    recorded
        .map(|(name, value)| {
            let value = masked(&name, &value);
            (name, value)
        })
        .collect()
}

pub(super) fn path(root: &SysRoot) -> Option<String> {
    environment_variables(root).remove("PATH")
}

fn environment_variables(root: &SysRoot) -> BTreeMap<String, String> {
    let text = root.text("/proc/self/environ").unwrap_or_default();
    let pairs = text.split('\0').filter_map(|variable| variable.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Masks secrets in a value, in search paths in each folder separately: their `:` is not that of `user:password`.
fn masked(name: &str, value: &str) -> String {
    if name.ends_with("PATH") {
        value.split(':').map(secrets::mask_option).collect::<Vec<_>>().join(":")
    } else {
        secrets::mask_command_line(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fake_root::FakeRoot;

    #[test]
    fn only_listed_variables_without_secrets_are_recorded() {
        let environ = "PATH=/bin:/home/me@work/bin\0AWS_SECRET_ACCESS_KEY=zq1\0OMP_NUM_THREADS=4\0LD_API_TOKEN=zq2\0\
                       LC_ALL=C\0LD_PRELOAD=https://u:zq3@h/x.so\0HOME=/root\0MALLOC_CONF=password=zq4\0";
        let variables = variables(&FakeRoot::new().file("/proc/self/environ", environ).root());
        assert_eq!(
            variables.keys().collect::<Vec<_>>(),
            ["LC_ALL", "LD_PRELOAD", "MALLOC_CONF", "OMP_NUM_THREADS", "PATH"]
        );
        assert_eq!(variables["PATH"], "/bin:/home/me@work/bin");
        assert!(variables.values().all(|value| !value.contains("zq")), "{variables:?}");
    }

    #[test]
    fn limits_and_groups_are_read() {
        let fake = FakeRoot::new()
            .file(
                "/proc/self/limits",
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max open files            1024                 4096                 files     \n\
                 Max nice priority         0                    0                              \n",
            )
            .file("/proc/self/cgroup", "4:memory:/a\n0::/b:c\n");
        assert_eq!(limits(&fake.root())["Max open files"], "1024 of 4096 files");
        assert_eq!(limits(&fake.root())["Max nice priority"], "0 of 0");
        assert_eq!(cgroups(&fake.root())["unified"], "/b:c");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn arbitrary_input_does_not_panic(text: String) {
            let fake = FakeRoot::new().file("/proc/self/limits", format!("head\n{text}")).file("/proc/self/environ", &text);
            let _ = (limits(&fake.root()), variables(&fake.root()));
        }
    }
}

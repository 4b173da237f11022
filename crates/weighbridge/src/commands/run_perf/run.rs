//! Translates `run-perf` into `run`, or into `plan` with `--plan`.

use std::net::Ipv6Addr;
use std::path::Path;

use wb_run_perf::{profile, test, tools};
use wb_session::hosts::LOOPBACK_ADDRESSES;

use super::{Translation, flag_word, option_words, path_word};
use crate::cli::run_perf::{ResultLayout, RunPerfArgs};
use crate::error::Error;

pub(super) fn translate(args: &RunPerfArgs) -> Result<Translation, Error> {
    let mut notes = Vec::new();
    let hosts: Vec<RunPerfHost> = args.hosts.iter().map(|text| RunPerfHost::parse(text)).collect();
    let addresses = guest_xml_addresses(&hosts);
    let tests = args.tests.iter().map(|text| test::translate(text)).collect::<Result<Vec<_>, _>>()?;
    let profiles = args.profiles.iter().map(|text| profile::translate(text, &addresses, &args.paths));
    let profiles = profiles.collect::<Result<Vec<_>, _>>()?;
    notes.extend(
        tests.iter().chain(profiles.iter().flat_map(|profile| &profile.tests)).flat_map(|test| test.notes.clone()),
    );
    notes.extend(profiles.iter().flat_map(|profile| profile.notes.clone()));

    let mut words = vec![if args.plan { "plan" } else { "run" }.to_owned()];
    words.extend(profiles.iter().flat_map(|profile| option_words("--profiles", profile.argument.clone())));
    words.extend(hosts.iter().flat_map(|host| option_words("--hosts", Some(host.argument()))));
    words.extend(args.paths.iter().flat_map(|folder| option_words("--paths", Some(path_word(folder)))));
    words.extend(option_words("--force-params", args.force_params.clone()));
    words.extend(option_words("--distro", args.distro.clone()));
    words.extend(option_words("--guest-distro", args.guest_distro.clone()));
    words.extend(option_words("--attempts", args.retry_tests));
    let measured = || tests.iter().chain(profiles.iter().flat_map(|profile| &profile.tests));
    words.extend(option_words("--budget", measured().any(|test| test.has_sets).then_some(SETS_BUDGET)));
    words.extend(
        tool_commands(args, &tests, &profiles, &mut notes)?.iter().flat_map(|tool| option_words("--tool", Some(tool))),
    );
    words.extend(preparation_words(args));
    if !args.plan {
        words.extend(output_words(args));
    }
    words.push("--".to_owned());
    words.extend(tests.iter().map(|test| test.spec.clone()));
    notes.extend(differences(args, &tests, &profiles));
    Ok(Translation { commands: vec![words], notes })
}

fn preparation_words(args: &RunPerfArgs) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(option_words("--provisioner", args.provisioner.clone()));
    words.extend(option_words("--host-setup-script", args.host_setup_script.clone()));
    words.extend(args.host_rpms.iter().flat_map(|package| option_words("--host-rpms", Some(package))));
    words.extend(flag_word("--host-setup-script-reboot", args.host_setup_script_reboot));
    words.extend(option_words("--worker-setup-script", args.worker_setup_script.clone()));
    words.extend(args.worker_rpms.iter().flat_map(|package| option_words("--worker-rpms", Some(package))));
    words
}

fn output_words(args: &RunPerfArgs) -> Vec<String> {
    let metadata = args.metadata.iter().filter(|(key, _)| key != TOOLS_KEY);
    let mut words: Vec<String> =
        metadata.flat_map(|(key, value)| option_words("--metadata", Some(format!("{key}={value}")))).collect();
    let named_after_time = || format!("result_{}", jiff::Zoned::now().strftime("%Y%m%d_%H%M%S"));
    let folder = args.output.as_deref().map_or_else(named_after_time, path_word);
    match args.layout {
        ResultLayout::Weighbridge => words.extend(option_words("--into", Some(folder))),
        ResultLayout::RunPerf => {
            // Patterns of a shell and run-perf's programs skip hidden folders.
            words.extend(option_words("--into", Some(path_word(&Path::new(&folder).join(".weighbridge")))));
            words.extend(option_words("--layout", Some(format!("run-perf={folder}"))));
        }
    }
    words
}

/// A budget of time that ends none of pbench's repeated sets of samples: run-perf has no such budget.
const SETS_BUDGET: &str = "7d";

/// Metadata key with the tools of pbench.
const TOOLS_KEY: &str = "pbench_tools";

/// Metadata that controls pbench in run-perf, each with what to do instead.
const PBENCH_METADATA: [(&str, &str); 3] = [
    ("pbench_server", "no pbench is installed, and results stay in the run folder"),
    ("pbench_server_publish", "pass a command that publishes results with --publish of `weighbridge run`"),
    ("pbench_copr_repos", "no pbench is installed; --host-rpms and --worker-rpms install packages"),
];

/// The commands to run during samples, the same for all tests: those of the tests or, without any, of the metadata.
fn tool_commands(
    args: &RunPerfArgs,
    tests: &[test::TranslatedTest],
    profiles: &[profile::TranslatedProfile],
    notes: &mut Vec<String>,
) -> Result<Vec<String>, Error> {
    let all =
        || tests.iter().chain(profiles.iter().flat_map(|profile| &profile.tests)).filter(|test| test.spec != "$@");
    let mut commands: Vec<String> = Vec::new();
    for tool in all().filter_map(|test| test.tools.as_ref()).flatten() {
        if !commands.contains(tool) {
            commands.push(tool.clone());
        }
    }
    if !commands.is_empty() {
        if all().count() > 1 {
            notes.push("`pbench_tools` of one test run around the samples of all tests".to_owned());
        }
        return Ok(commands);
    }
    let Some((_, json)) = args.metadata.iter().find(|(key, _)| key == TOOLS_KEY) else { return Ok(Vec::new()) };
    let list = serde_json::from_str(json).map_err(|error| Error::Usage {
        what: format!("invalid metadata `{TOOLS_KEY}`: the JSON cannot be read: {error}"),
        help: format!("example: `{TOOLS_KEY}=[\"sar\", \"iostat:--interval=3\"]`"),
    })?;
    Ok(tools::translate(&list, notes)?)
}

fn differences(
    args: &RunPerfArgs,
    tests: &[test::TranslatedTest],
    profiles: &[profile::TranslatedProfile],
) -> Vec<String> {
    let mut all = Vec::new();
    if !args.default_passwords.is_empty() {
        all.push(
            "--default-passwords has no effect: ssh logs in with your keys (`ssh-copy-id root@ADDRESS` installs one)"
                .to_owned(),
        );
    }
    if args.keep_tmp_files {
        all.push("--keep-tmp-files has no effect: the files of the tests are in the results folder".to_owned());
    }
    for (key, instead) in PBENCH_METADATA {
        if args.metadata.iter().any(|(given, _)| given == key) {
            all.push(format!("metadata `{key}` has no effect: {instead}"));
        }
    }
    let measured = || tests.iter().chain(profiles.iter().flat_map(|profile| &profile.tests));
    if measured().any(|test| test.has_server) && profiles.iter().any(|profile| profile.has_guests) {
        all.push("uperf measures between guests, or within one; run-perf's server is on the host".to_owned());
    }
    let per_worker = |test: &test::TranslatedTest| test.spec.contains(wb_plan::WORKER_CPUS);
    if measured().any(per_worker) {
        all.push(
            "`__PER_WORKER_CPUS__` is the number of CPUs of a worker, also of a host; run-perf divides guest_cpus of the \
             host among its workers"
                .to_owned(),
        );
    }
    all
}

/// The addresses by which guests' definitions of these hosts are found: all of this machine's stand for each other, and
/// it is the default host.
fn guest_xml_addresses(hosts: &[RunPerfHost]) -> Vec<String> {
    let is_local = hosts.is_empty() || hosts.iter().any(RunPerfHost::is_local);
    let local = LOOPBACK_ADDRESSES.into_iter().filter(|_| is_local).map(str::to_owned);
    hosts.iter().map(|host| host.address.clone()).chain(local).collect()
}

/// A host of run-perf: `[NAME:]ADDRESS`.
struct RunPerfHost {
    name: Option<String>,
    address: String,
}

impl RunPerfHost {
    fn parse(text: &str) -> Self {
        // A colon also separates a port, and the parts of an IPv6 address, neither of which run-perf's own form has.
        let is_port = |rest: &str| rest.bytes().all(|byte| byte.is_ascii_digit());
        let is_v6 = text.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
        let named = text.split_once(':').filter(|(name, rest)| !is_v6 && !name.contains(['[', '@']) && !is_port(rest));
        let (name, address) = named.map_or((None, text), |(name, address)| (Some(name.to_owned()), address));
        Self { name, address: address.to_owned() }
    }

    /// Whether it is this machine, which needs no ssh. An address with a port is another machine, or a guest.
    fn is_local(&self) -> bool {
        let bare = self.address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        LOOPBACK_ADDRESSES.contains(&bare.unwrap_or(&self.address))
    }

    /// The host as this program's argument. run-perf logs in as root, also to this machine, which needs no ssh here.
    fn argument(&self) -> String {
        if self.is_local() {
            return format!("{}:local", self.name.as_deref().unwrap_or("localhost"));
        }
        let address = match self.address.as_str() {
            other if other.contains('@') => other.to_owned(),
            other => format!("root@{other}"),
        };
        self.name.as_ref().map_or_else(|| address.clone(), |name| format!("{name}:{address}"))
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    // What precedes a colon was taken for the name of the host.
    #[test]
    fn a_port_and_an_ipv6_address_are_no_names() {
        let addresses =
            ["10.79.0.2", "lab", "lab.example.org", "[::1]", "[2001:db8::7]", "me@lab", "me@[fe80::1%eth0]"];
        for address in addresses {
            for port in ["", ":22", ":2222"] {
                for name in ["", "foo:"] {
                    let text = format!("{name}{address}{port}");
                    let host = RunPerfHost::parse(&text);
                    assert_eq!(host.name.is_some(), !name.is_empty(), "{text}");
                    assert_eq!(host.address, format!("{address}{port}"), "{text}");
                    assert_eq!(host.is_local(), text.ends_with("[::1]"), "{text}");
                }
            }
        }
        for bare in ["2001:db8::7", "fe80::1%eth0", "::1"] {
            let host = RunPerfHost::parse(bare);
            assert_eq!((host.name.is_some(), host.address.as_str()), (false, bare));
        }
        assert_eq!(RunPerfHost::parse("[::1]").argument(), "localhost:local");
        assert_eq!(RunPerfHost::parse("[::1]:22").argument(), "root@[::1]:22");
    }

    // The guest definition of this machine was found by the address alone that its file is named after.
    #[test]
    fn addresses_of_this_machine_stand_for_each_other() {
        let expects = |texts: &[&str]| {
            let hosts: Vec<RunPerfHost> = texts.iter().map(|text| RunPerfHost::parse(text)).collect();
            let all = guest_xml_addresses(&hosts);
            LOOPBACK_ADDRESSES.iter().all(|address| all.iter().any(|one| one == address))
        };
        for local in LOOPBACK_ADDRESSES {
            assert!(expects(&[local]) && expects(&["10.0.0.1", &format!("foo:{local}")]), "{local}");
        }
        assert!(expects(&[]) && !expects(&["10.0.0.1"]));
    }

    #[test]
    fn hosts_use_root_and_this_machine_needs_no_ssh() {
        let word = |text: &str| RunPerfHost::parse(text).argument();
        let all = ["10.0.0.1", "a:lab.example.org", "a:me@lab", "localhost", "here:127.0.0.1", "::1"];
        assert_eq!(
            all.map(word),
            ["root@10.0.0.1", "a:root@lab.example.org", "a:me@lab", "localhost:local", "here:local", "localhost:local"]
        );
    }
}

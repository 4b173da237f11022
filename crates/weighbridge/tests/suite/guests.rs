//! Profiles with guests: emulated ones, started by a real libvirt. Each test has its own namespaces for libvirt.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use wb_agent::Worker;
use wb_model::WorkerName;
use wb_profile::image::{BaseImage, ImageOptions, ImageSpec, prepare};
use wb_test_net::{Libvirt, wait_until};

use crate::lab::{CommandResult, KillOnDrop, Lab};

const QUICK: &str = "--min-time 1ms --warm-up 0 --samples 6";
const AGENT: &str = env!("CARGO_BIN_EXE_weighbridge-agent");
const PROGRAM: &str = env!("CARGO_BIN_EXE_weighbridge");
/// The image of the guests.
const IMAGE: &str = r#"{"built":"bookworm","packages":["fio"]}"#;
/// The image folder of these tests, which compare what it has before and after a run.
const CACHE: &str = "guest-images";

/// Prints the names of the processes that exist throughout two seconds, without its own: libvirt starts helpers at any
/// time, which end at once.
const PROCESSES: &str = "for i in 0 1 2 3 4 5 6 7 8 9; do ps -eo comm= | sort -u; sleep 0.2; done | sort | uniq -c | \
                         sed -n 's/^ *10 //p' | grep -v -x -e ps -e sh -e sleep -e sort -e uniq -e sed -e grep";

/// An image folder that the guests' user can access, with the image built; `None`, with a message, if it cannot be
/// built.
fn images() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(|| built(IMAGE, CACHE).map(|_| cache(CACHE))).as_deref()
}

/// An image folder that the guests' user can access.
fn cache(name: &str) -> PathBuf {
    let target = Path::new(AGENT).ancestors().nth(3).unwrap().join(name);
    let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap());
    let is_open = target.ancestors().skip(1).all(|path| mode(path) & 0o001 != 0);
    if is_open { target } else { Path::new("/var/tmp").join(format!("weighbridge-{name}")) }
}

/// Builds an image in the image folder `folder`; `None`, with a message, if it cannot be built.
pub(crate) fn built(image: &str, folder: &str) -> Option<BaseImage> {
    let image: ImageSpec = serde_json::from_str(image).unwrap();
    let options = ImageOptions { cache: Some(cache(folder).display().to_string()), ..ImageOptions::default() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let built = runtime.block_on(async {
        let worker = Worker::local_named(WorkerName::new("images").unwrap(), Path::new(AGENT)).await.unwrap();
        let built = prepare(&worker, &image, &options, &|_| {}).await;
        worker.close().await.unwrap();
        built
    });
    built.inspect_err(|error| wb_test_skip::skip!("guests need an image: {error}")).ok()
}

/// A test environment with libvirt, images and a lab; only one at a time, because emulated guests take more than a CPU
/// each.
struct World {
    libvirt: Libvirt,
    images: &'static Path,
    lab: Lab,
    _alone: MutexGuard<'static, ()>,
}

impl World {
    fn new() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        Some(Self { images: images()?, libvirt: Libvirt::new()?, lab: Lab::new(), _alone: alone })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.libvirt.command(&self.lab.path(""), PROGRAM);
        command.args(words).env("XDG_CONFIG_HOME", self.lab.path("config")).env("WEIGHBRIDGE_CACHE", self.images);
        command.env("TMPDIR", self.lab.path("")).env("WEIGHBRIDGE_LOCKS", self.lab.path("")).stdin(Stdio::null());
        command
    }

    /// Runs a command line with these profiles.
    fn run(&self, line: &str, profiles: &str) -> CommandResult {
        let words: Vec<&str> = line.split_whitespace().chain(["--profiles", profiles]).collect();
        self.lab.run_command(&mut self.command(&words))
    }

    /// Starts sshd in the environment and writes an ssh configuration for it to the lab's file `way`.
    fn sshd(&self) -> KillOnDrop {
        let path = |name: &str| self.lab.path(name).display().to_string();
        for key in ["user", "host"] {
            let words = ["-q", "-t", "ed25519", "-N", "", "-f", &path(key)];
            assert!(Command::new("ssh-keygen").args(words).status().unwrap().success());
        }
        let known = format!("127.0.0.1 {}", std::fs::read_to_string(path("host.pub")).unwrap());
        self.lab.write("known", &known);
        let way = "Host *\nIdentityFile USER\nIdentitiesOnly yes\nUserKnownHostsFile KNOWN\n";
        self.lab.write("way", &way.replace("USER", &path("user")).replace("KNOWN", &path("known")));
        let text = format!(
            "ListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             SetEnv XDG_CACHE_HOME={} WEIGHBRIDGE_CACHE={}\n",
            path("host"),
            path("user.pub"),
            path("cache"),
            self.images.display()
        );
        self.lab.write("sshd.conf", &text);
        let words = format!("mkdir -p /run/sshd && exec /usr/sbin/sshd -D -e -f {}", path("sshd.conf"));
        let log = std::fs::File::create(path("sshd.log")).unwrap();
        let mut command = self.libvirt.command(&self.lab.path(""), "sh");
        let server = KillOnDrop(command.args(["-c", &words]).stdin(Stdio::null()).stderr(log).spawn().unwrap());
        wait_until("sshd", || {
            self.libvirt.output_of(&["ss", "-Hltn", "sport", "=", ":22"]).is_some_and(|it| !it.is_empty())
        });
        server
    }

    /// State of the machine that a run must leave unchanged, as lines.
    fn machine_state(&self) -> BTreeSet<String> {
        // Names of groups and folders contain the namespace's number, since other tests may run on the machine.
        let namespace = "$(readlink /proc/self/ns/pid | tr -dc 0-9)";
        let groups = format!("find /sys/fs/cgroup -type d -name \"*weighbridge*{namespace}*\" 2>/dev/null");
        let temporary = format!(
            "ls /tmp /var/tmp | grep weighbridge-.*{namespace}; ls {} | grep weighbridge-; true",
            self.lab.path("").display()
        );
        // Exclude files that libvirt's dnsmasq keeps after its first network, and the log folder that libvirt creates
        // with its first guest.
        let files = format!(
            "find /var/lib/libvirt /var/lib/weighbridge /var/log/libvirt/qemu {} -path /var/lib/libvirt/dnsmasq -prune -o -path /var/log/libvirt/qemu -o -print 2>/dev/null | sort",
            self.images.display()
        );
        // Exclude what other tests mount: in their own temporary folders, as the builds of their images do, and network
        // namespaces.
        let mounts = format!(
            "awk '(index($5, \"{}/.tmp\") != 1 || index($5, \"{}\") == 1) && $5 !~ \"^/run/netns/wl[0-9]\"' \
             /proc/self/mountinfo | cut -d' ' -f4- | sort",
            std::env::temp_dir().display(),
            self.lab.path("").display()
        );
        [
            ("domains", "virsh -c qemu:///system list --all"),
            (
                "networks",
                "virsh -c qemu:///system net-list --all; virsh -c qemu:///system net-dumpxml --inactive default",
            ),
            ("pools", "virsh -c qemu:///system pool-list --all"),
            ("links", "ip -o link | cut -d: -f2; ip -o addr show scope global"),
            // Without the rules that libvirt creates once for all networks and keeps.
            ("packets", "iptables-save | grep -v -e '^#' -e '^:' -e 'LIBVIRT_' -e COMMIT -e '^[*]'; true"),
            ("forwarding", "cat /proc/sys/net/ipv4/ip_forward"),
            ("files", &files),
            ("mounts", &mounts),
            ("groups", &groups),
            ("processes", PROCESSES),
            ("temporary", &temporary),
        ]
        .iter()
        .flat_map(|(name, script)| {
            let output = self.libvirt.output_of(&["sh", "-c", script]).unwrap_or_else(|| panic!("{script}"));
            output.lines().map(|line| format!("{name}: {line}")).collect::<Vec<_>>()
        })
        .collect()
    }

    /// Panics, naming the lines that differ, unless the machine is in this state.
    fn expect_machine_state(&self, before: &BTreeSet<String>) {
        let after = self.machine_state();
        let added: Vec<&String> = after.difference(before).collect();
        let removed: Vec<&String> = before.difference(&after).collect();
        assert!(added.is_empty() && removed.is_empty(), "added: {added:#?}\nremoved: {removed:#?}");
    }
}

/// A profile with one small emulated guest, and additional parameters.
fn small(profile: &str, more: &str) -> String {
    format!(r#"{profile}:{{"image":{IMAGE},"force_guest_cpus":1,"force_guest_mem":1024,"virt-type":"qemu"{more}}}"#)
}

fn outcomes(ran: &CommandResult) -> Vec<(String, String)> {
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let study = ran.json();
    let cells = study["cells"].as_array().unwrap().iter();
    cells.map(|cell| (text(&cell["id"]), text(&cell["outcome"]["outcome"]))).collect()
}

#[test]
#[ignore = "starts a guest in software"]
fn fio_on_host_and_in_guest_is_compared_and_the_host_is_restored() {
    let Some(world) = World::new() else { return };
    // Remove what killed tests may have left.
    world.lab.run_command(&mut world.command(&["profile", "revert"]));
    let before = world.machine_state();
    let test = "fio:rw=read,bs=4k,ramptime=0s,runtime=1s,size=16m,samples=2 steady";
    let profiles = format!("Localhost,{}", small("DefaultLibvirt", ""));
    let ran = world.run(&format!("run {test} {QUICK} --into R --json"), &profiles).expect_code_of(&[0, 3]);
    assert!(
        ran.err.contains("`local`: guests are emulated in software") || ran.err.contains("waiting for 1 guest"),
        "{}",
        ran.err
    );
    let cells: Vec<String> = outcomes(&ran).into_iter().map(|(cell, _)| cell).collect();
    assert_eq!(cells.len(), 4, "{cells:?}");
    world.expect_machine_state(&before);

    // The environments of guest and host, and the guest's definition, are recorded.
    let environment = world.lab.path("R/environment");
    let read = |name: &str| std::fs::read_to_string(environment.join(name)).unwrap();
    assert!(read("world-1-before.json").contains("cloud-amd64"));
    assert!(environment.join("world-1-before@local.json").exists());
    assert!(read("console-1@vm1.log").contains("login:"));
    let state: serde_json::Value = serde_json::from_str(&read("profile-1.json")).unwrap();
    let guest = &state[0]["guests"][0];
    assert_eq!((guest["name"].as_str(), guest["virt-type"].as_str()), (Some("vm1"), Some("qemu")));
    assert!(guest["xml"].as_str().unwrap().starts_with("<domain type=\"qemu\">"));

    // Emulated machines are compared with hardware only if requested.
    let compare = |more: &str| world.lab.weighbridge(&format!("compare R R --map Localhost=DefaultLibvirt{more}"));
    compare("").expect_stderr("help: --allow-emulated");
    let html = compare(" --allow-emulated --html page.html");
    assert!([0, 2].contains(&html.code) && !html.out.contains("missing"), "{}", html.transcript());
    assert!(world.lab.read("page.html").contains("fio"));
    // Complete cells are not measured again, and no guest is started to find that out.
    let again = world.run(&format!("run {test} {QUICK} --into R"), &profiles);
    assert!([3, 4].contains(&again.code) && !again.err.contains("waiting for"), "{}", again.transcript());
    world.expect_machine_state(&before);
}

#[test]
#[ignore = "starts guests in software"]
fn several_guests_measure_together_and_a_killed_guest_is_lost() {
    let Some(world) = World::new() else { return };
    world.lab.define_script("long", "sleep 600; echo figure: 1");
    let profiles = small("DefaultLibvirtMulti", r#","force_no_vms":2"#);
    let line = "run steady long:on=vm2 --min-time 1ms --warm-up 0 --samples 1 --order sequential --into R --profiles";
    let words: Vec<&str> = line.split_whitespace().chain([profiles.as_str()]).collect();
    let mut command = world.command(&words);
    let mut run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = || std::fs::read_to_string(world.lab.path("R/journal.jsonl")).unwrap_or_default();
    eventually_slowly("the long test started", &world, &mut run, || journal().contains("/long/"));
    let find = "pgrep -f 'guest=weighbridge-[0-9]*-vm2'";
    let pid = world.libvirt.output_of(&["sh", "-c", find]).expect("the guest's process");
    world.libvirt.output_of(&["kill", "-9", pid.lines().next().unwrap()]).unwrap();
    CommandResult::wait_for(run).expect_code(3);
    let study = world.lab.weighbridge("study R --json").json();
    let cell = |index: usize| study["cells"][index].clone();
    let workers: Vec<String> = cell(0)["metrics"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["worker"].as_str().map(str::to_owned))
        .collect();
    assert!(workers.contains(&"vm1".to_owned()) && workers.contains(&"vm2".to_owned()), "{workers:?}");
    assert_eq!(cell(1)["outcome"]["outcome"], "failed", "{}", cell(1)["outcome"]);
    assert_eq!(world.libvirt.output_of(&["virsh", "-q", "-c", "qemu:///system", "list", "--all"]).unwrap().trim(), "");
}

#[test]
#[ignore = "starts a guest in software"]
fn killed_run_leaves_no_guest() {
    let Some(world) = World::new() else { return };
    world.lab.define_script("long", "sleep 600; echo figure: 1");
    let profiles = small("TunedLibvirt", "");
    let words: Vec<&str> = ["run", "long", "--into", "R", "--profiles", &profiles].to_vec();
    let mut run = world.command(&words).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = || std::fs::read_to_string(world.lab.path("R/journal.jsonl")).unwrap_or_default();
    eventually_slowly("the long test started", &world, &mut run, || journal().contains("/long/"));
    let listed = || world.libvirt.output_of(&["virsh", "-q", "-c", "qemu:///system", "list", "--all"]).unwrap();
    assert!(listed().contains("vm1"));
    let keys = || {
        let folder = world.lab.path("").display().to_string();
        world
            .libvirt
            .output_of(&["sh", "-c", &format!("find {folder}/weighbridge-* -name key 2>/dev/null; true")])
            .unwrap()
    };
    assert!(keys().contains("weighbridge-"), "the key for logging in to the guest");
    // nsenter has a child in the other PID namespace: the program itself, with its agent as a child. The kernel cuts names.
    let all = world.libvirt.output_of(&["pgrep", "-x", "weighbridge(-age)?"]).unwrap();
    assert!(all.lines().count() >= 2, "{all}");
    for pid in all.lines() {
        world.libvirt.output_of(&["kill", "-9", pid]);
    }
    run.wait().unwrap();
    assert!(listed().contains("vm1"), "nothing is left to stop the guest");
    let reverted = world.lab.run_command(&mut world.command(&["profile", "revert"])).expect_code(0);
    reverted.expect_stdout("the guest vm1: restored");
    assert_eq!((listed().trim(), keys().as_str()), ("", ""));
    assert_eq!(world.libvirt.output_of(&["sh", "-c", "ls /var/lib/libvirt/images"]).unwrap(), "");
}

#[test]
#[ignore = "starts a guest in software"]
fn run_interrupted_while_its_guest_starts_is_recorded_and_resumed() {
    let Some(world) = World::new() else { return };
    let profiles = small("DefaultLibvirt", "");
    let plan = world.run(&format!("plan steady {QUICK}"), &profiles).expect_code(0);
    plan.expect_stdout(", of which up to 10 min to start guests");

    let line = format!("run steady {QUICK} --into R");
    let words: Vec<&str> = line.split_whitespace().chain(["--profiles", &profiles]).collect();
    let mut run = world.command(&words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let domains =
        || world.libvirt.output_of(&["virsh", "-q", "-c", "qemu:///system", "list", "--all"]).unwrap_or_default();
    eventually_slowly("the guest started", &world, &mut run, || domains().contains("vm1"));
    let oldest = world.libvirt.output_of(&["pgrep", "-o", "-x", "weighbridge"]).expect("the program's process");
    world.libvirt.output_of(&["kill", "-INT", oldest.trim()]).unwrap();
    let interrupted = CommandResult::wait_for(run).expect_code(130);
    interrupted.expect_stderr("error: interrupted before anything was measured\nhelp: to resume: ");
    assert_eq!(domains().trim(), "");
    let summary = world.lab.weighbridge("summary R --json").expect_code(3).json();
    let reason = "interrupted while starting guests of the profile `DefaultLibvirt` on `local`";
    assert_eq!(summary["run"]["unmeasured"], reason);

    world.run(&line, &profiles).expect_code_of(&[0, 3]);
    let seconds = |machine: &str| {
        let journal = world.lab.journal("R").into_iter();
        let mut ended = journal.filter(|line| line["event"] == "preparation-ended" && line["machine"] == machine);
        ended.next().unwrap_or_else(|| panic!("no end for {machine}"))["seconds"].as_f64().unwrap()
    };
    assert!(0.0 < seconds("vm1") && seconds("vm1") <= seconds("local"));
    let study = world.lab.weighbridge("study R --json").json();
    let prepared = study["run"]["preparation_seconds"].as_f64().unwrap();
    assert!(prepared >= seconds("vm1"), "{prepared} s, the guest took {} s", seconds("vm1"));
}

#[test]
#[ignore = "starts a guest in software"]
fn guest_that_does_not_boot_is_reported_within_its_time_limit() {
    let Some(world) = World::new() else { return };
    let disk = world.lab.path("nothing.img");
    std::fs::write(&disk, vec![0; 1 << 20]).unwrap();
    // In a folder that libvirt's user can access.
    world.libvirt.output_of(&["cp", disk.to_str().unwrap(), "/var/lib/libvirt/images/nothing.img"]).unwrap();
    let image = r#""image":"/var/lib/libvirt/images/nothing.img","force_guest_cpus":1,"force_guest_mem":256,"virt-type":"qemu","limit":"8s""#;
    let ran =
        world.run(&format!("run steady {QUICK} --into R --json"), &format!("DefaultLibvirt:{{{image}}},Localhost"));
    assert_eq!(ran.code, 3, "{}", ran.transcript());
    ran.expect_stderr("the guest `vm1` has no address after 8");
    let expected = [("DefaultLibvirt", "unsupported"), ("Localhost", "measured")];
    let expected = expected.map(|(profile, outcome)| (format!("{profile}/steady/0000:kind=a"), outcome.to_owned()));
    assert_eq!(outcomes(&ran), expected);
    assert_eq!(world.libvirt.output_of(&["virsh", "-q", "-c", "qemu:///system", "list", "--all"]).unwrap().trim(), "");

    let kvm = world.run("run steady --into S", &format!("DefaultLibvirt:{{{}}}", image.replace("\"qemu\"", "\"kvm\"")));
    assert_eq!(kvm.code, 1, "{}", kvm.transcript());
    if kvm.err.contains("has no address after 8") {
        wb_test_skip::skip!("the refusal of a processor that runs no guests: this one does");
    } else {
        kvm.expect_stderr("KVM is not available");
    }
}

#[test]
#[ignore = "starts a guest in software"]
fn guest_on_a_remote_host_is_reached_through_the_host() {
    let Some(world) = World::new() else { return };
    let sshd = world.sshd();
    let before = world.machine_state();
    let config = world.lab.path("way").display().to_string();
    let line = format!("run steady {QUICK} --hosts far:root@127.0.0.1 --ssh-config {config} --into R");
    let ran = world.run(&line, &small("DefaultLibvirt", ""));
    assert_eq!(ran.code, 0, "{}\n{}", ran.transcript(), world.lab.read("sshd.log"));
    let read = |name: &str| world.lab.read(format!("R/environment/{name}"));
    let state: serde_json::Value = serde_json::from_str(&read("profile-0.json")).unwrap();
    assert_eq!((&state[0]["host"], &state[0]["guests"][0]["name"]), (&"far".into(), &"far-vm1".into()));
    assert!(read("console-0@far-vm1.log").contains("login:"));
    assert!(world.lab.path("R/environment/world-0-before@far.json").exists());
    world.expect_machine_state(&before);
    drop(sshd);
}

#[test]
#[ignore = "is about guests"]
fn stopped_libvirt_is_reported() {
    let Some(libvirt) = Libvirt::stopped() else { return };
    let lab = Lab::new();
    let mut command = libvirt.command(&lab.path(""), PROGRAM);
    command.args(["run", "steady", "--into", "R", "--profiles", "DefaultLibvirt"]).stdin(Stdio::null());
    let ran = lab.run_command(
        command
            .env("XDG_CONFIG_HOME", lab.path("config"))
            .env("TMPDIR", lab.path(""))
            .env("WEIGHBRIDGE_LOCKS", lab.path("")),
    );
    assert_eq!(ran.code, 1, "{}", ran.transcript());
    ran.expect_stderr("libvirt does not respond").expect_stderr("systemctl start libvirtd");
}

/// A host file with every parameter of run-perf's.
fn host_file(guest_cpus: u32, guest_memory_mib: u32) -> String {
    format!(
        "hugepage_kb: 2048\nnuma_nodes: 1\nhost_cpus: 2\nguest_cpus: {guest_cpus}\nguest_mem_m: {guest_memory_mib}\n\
         arch: x86_64\ndisable_smt: false\n"
    )
}

/// The shipped example of a user's domain.
const DOMAIN: &str = include_str!("../../../../examples/guest.xml");

/// The number of huge pages of the machine, and of those that are free.
fn huge_pages() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
        line.trim().parse().unwrap()
    };
    (value("HugePages_Total"), value("HugePages_Free"))
}

#[test]
#[ignore = "starts a guest in software: make test-long"]
fn soak_tuned_guest_of_a_users_domain_boots_the_images_kernel_on_huge_pages() {
    let Some(world) = World::new() else { return };
    world.lab.write("assets/hosts/localhost.yaml", &host_file(2, 1024));
    world.lab.write("assets/libvirt/localhost-tuned.xml", DOMAIN);
    world.lab.define_script("cpus", "sleep 0.5; echo figure: $(nproc)");
    let before = (world.machine_state(), huge_pages());
    let profile = format!(r#"TunedLibvirt:{{"image":{IMAGE},"virt-type":"qemu","sets":[]}}"#);
    let command = |more: &[&str]| {
        let words = ["run-perf", "--hosts", "a:localhost", "--paths", "assets", "--profiles", &profile];
        world.command(&[words.as_slice(), more].concat())
    };
    let planned = world.lab.run_command(&mut command(&["--plan", "--", "cpus"]));
    planned.expect_code(0).expect_stdout("`a-vm1` with 2 CPUs, 1 GiB of memory");

    let mut run = command(&["--output", "R", "--", "cpus"]);
    let mut run = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = || std::fs::read_to_string(world.lab.path("R/journal.jsonl")).unwrap_or_default();
    eventually_slowly("the first attempt", &world, &mut run, || journal().contains("attempt-started"));
    let (total, free) = huge_pages();
    let ran = CommandResult::wait_for(run).expect_code(0);
    assert!(!ran.err.contains("was detected"), "{}", ran.err);
    assert_eq!((total - before.1.0, total - free), (512, 512), "of 2 MiB, all of them used");
    let study = world.lab.weighbridge("study R --json").json();
    assert_eq!(study["cells"][0]["metrics"][0]["summary"]["median"], 2.0, "{study}");
    let state = world.lab.read_json("R/environment/profile-0.json");
    let xml = state[0]["guests"][0]["xml"].as_str().unwrap().to_owned();
    assert!(xml.contains("<cmdline>root=LABEL=weighbridge") && xml.contains("<page size='2048'"), "{xml}");
    assert_eq!((world.machine_state(), huge_pages()), before);
}

#[test]
#[ignore = "starts three guests in software: make test-long"]
fn soak_overcommitting_guests_are_as_many_as_in_run_perf() {
    let Some(world) = World::new() else { return };
    // For 2 CPUs and guests of 1: 2 / 1 × 1.5 = 3 guests, which share the memory.
    world.lab.write("assets/hosts/localhost.yaml", &host_file(1, 1200));
    world.lab.define_script("cpus", "echo figure: $(nproc)");
    let profile = format!(r#"Overcommit1_5:{{"image":{IMAGE},"virt-type":"qemu"}}"#);
    let words = ["run-perf", "--hosts", "localhost", "--paths", "assets", "--profiles", &profile, "--output", "R"];
    let ran = world.lab.run_command(&mut world.command(&[words.as_slice(), &["--", "cpus"]].concat()));
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let state = world.lab.read_json("R/environment/profile-0.json");
    let guests = state[0]["guests"].as_array().unwrap().iter();
    let sizes: Vec<_> = guests.map(|guest| (guest["cpus"].clone(), guest["memory"].clone())).collect();
    assert_eq!(sizes, vec![(1.into(), "400m".into()); 3]);
    // They measure together: the figure of all is the sum of three guests with a CPU each.
    let study = world.lab.weighbridge("study R --json").json();
    let metrics = study["cells"][0]["metrics"].as_array().unwrap();
    let all = metrics.iter().find(|metric| metric["worker"].is_null()).unwrap();
    assert_eq!((metrics.len(), &all["summary"]["median"]), (4, &3.0.into()), "{study}");
}

/// Waits for a condition while a program runs, for as long as an emulated guest may take.
fn eventually_slowly(what: &str, world: &World, run: &mut Child, is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        let ended = run.try_wait().unwrap();
        if ended.is_some() || start.elapsed().as_secs() >= 600 {
            let processes = world.libvirt.transcript_of(&["ps", "-eo", "pid,ppid,stat,wchan:20,etimes,args"]);
            let domains =
                world.libvirt.transcript_of(&["timeout", "60", "virsh", "-c", "qemu:///system", "list", "--all"]);
            // Otherwise the pipes of a program that hangs never end.
            world.libvirt.output_of(&["kill", "-KILL", "--", "-1"]);
            let mut stderr = String::new();
            run.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
            panic!("{what}: not in time; the program ({ended:?}) printed:\n{stderr}\n{domains}\n{processes}");
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

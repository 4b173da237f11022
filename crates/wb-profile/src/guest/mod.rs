//! Creates guests (virtual machines) on a host for a profile, and connects to them as workers.

mod cpu_isolation;
mod domain;
mod huge_pages;
mod keys;
mod logs;
mod sizing;
mod template;
mod virsh;
mod virt;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;
use wb_agent::{Scratch, Worker};
use wb_fleet::{ConnectOptions, ConnectedHost, FleetError, Host, HostParams, connect};
use wb_knobs::tune::KnobSetting;
use wb_model::{Bytes, Nanos, WorkerName};

use crate::error::ProfileErrorKind;
use crate::host::{last_lines, require_program, run};
use crate::host_context::HostContext;
use crate::image::{self, BaseImage, SeedConfig};
use crate::profile::{CpuPinning, GuestsConfig, VirtType};

pub(crate) use keys::GuestSshKeys;
pub use logs::{GuestLog, GuestLogs, guest_logs, remove_guest_logs};

use domain::{DomainSpec, format_name};
use huge_pages::HugePageDemand;
use keys::SshGateway;
use sizing::GuestSize;
use template::FilledTemplate;

/// Interval for polling a guest's address and ssh server.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of console lines that an error quotes.
const MAX_CONSOLE_LINES: usize = 12;
const MAX_CONSOLE_SIZE: Bytes = Bytes(16 << 20);

/// Record of a guest that was created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct GuestRecord {
    /// Its name as a worker.
    pub name: WorkerName,
    /// Its name in libvirt.
    pub domain: String,
    /// Its address.
    pub address: String,
    /// Its number of CPUs.
    pub cpus: u32,
    /// Its memory.
    pub memory: Bytes,
    /// The hypervisor that runs it.
    pub virt_type: VirtType,
    /// The image that its disk is based on.
    pub image: BaseImage,
    /// Its domain, as libvirt's XML.
    pub xml: String,
    /// Time from its start until its agent responded.
    pub started_in: Nanos,
}

pub(crate) struct RunningGuests {
    /// Their workers, each with its record and the path of its console on the host.
    pub(crate) all: Vec<(Worker, GuestRecord, String)>,
    /// Their files, removed when this is dropped.
    pub(crate) folder: Scratch,
    pub(crate) keys: GuestSshKeys,
}

/// Starts the guests of a profile on a host; they run until its group is torn down.
pub(crate) async fn start(guests: &GuestsConfig, context: &HostContext<'_>) -> Result<RunningGuests, ProfileErrorKind> {
    let group = context.group;
    if run(group, ["id", "-u"]).await?.trim() != "0" {
        return Err(ProfileErrorKind::NotRoot);
    }
    virsh::require_libvirt(group).await?;
    require_program(group, "qemu-img", "qemu-utils").await?;
    if guests.xml.is_none() {
        require_program(group, "virt-install", "virtinst").await?;
    }
    let worker = group.worker();
    let facts = worker.facts().await?;
    let detected = HostParams::detect(worker).await?;
    let params = detected.overridden_by(context.params);
    let sizes = sizing::plan_guests(guests, &params, &facts)?;
    let folder = worker.new_scratch(Some(guest_folder(context).await?)).await?;
    // libvirt runs guests as a user of its own, which needs access to their files.
    run(group, ["chmod", "0711", folder.path()]).await?;
    if guests.xml.is_none() {
        virsh::require_pool(group, folder.path()).await?;
    }
    let (virt, software) =
        virt::resolve(guests.virt_type, &facts.arch, guests.qemu_bin.as_deref(), &folder, group).await?;
    if let Some(reason) = software {
        context
            .notify(format!("guests are emulated in software, so their results do not reflect the hardware: {reason}"));
    }
    let base = prepare_base(guests, &params, context).await?;
    virsh::require_network(group, &guests.network).await?;
    let template = guests.xml.as_ref().map(|file| context.asset(file)).transpose()?;
    let preview = match (&template, sizes.first()) {
        (Some(template), Some(size)) => {
            let spec = placeholder_spec(guests, size, virt, &base, params.hugepage_kb);
            Some(template::fill(&spec, template)?)
        }
        _ => None,
    };
    let uses_huge_pages = match HugePageDemand::new(guests, preview.as_ref(), &params, &detected) {
        Some(demand) => demand.reserve(&sizes, context).await?,
        None => false,
    };
    if guests.placement == CpuPinning::Pinned {
        cpu_isolation::move_others_off(&sizes, &facts, context).await?;
    }

    let keys = GuestSshKeys::new(context.program.path()).await?;
    let mut started_guests = Vec::new();
    for (index, size) in sizes.iter().enumerate() {
        let name = context.guest_name(index + 1);
        let domain = format!("weighbridge-{}-{name}", std::process::id());
        let file = |kind: &str| folder.join(&format!("{name}.{kind}"));
        let (disk, seed, console, definition) = (file("disk"), file("seed"), file("console"), file("xml"));
        create_disk(guests, &base, &disk, context).await?;
        let host_key = keys.host_key(&name).await?;
        let mac = mac(&domain);
        let seed_config = SeedConfig {
            hostname: name.as_str(),
            authorized_key: keys.public.trim(),
            host_key: image::HostKey { private: &host_key.private, public: host_key.public.trim() },
            macs: &[&mac],
        };
        let volume = seed_config.volume()?;
        worker.put(&seed, &volume, 0o600).await?;
        let spec = DomainSpec {
            name: &domain,
            guests,
            size,
            virt_type: virt,
            base_image: &base,
            disk: &disk,
            seed: &seed,
            console: &console,
            mac: &mac,
            hugepage_kb: params.hugepage_kb,
            uses_huge_pages,
        };
        let xml = match &template {
            None => domain::generate_xml(&spec, group).await?,
            Some(template) => template::fill(&spec, template)?.xml,
        };
        worker.put(&definition, xml.as_bytes(), 0o600).await?;
        let started = Instant::now();
        virsh::start(group, &name, &domain, &definition).await?;
        started_guests.push(StartedGuest { name, domain, console, xml, size: size.clone(), started });
    }
    context.notify(format!("waiting for {}", wb_model::pluralize(started_guests.len(), "guest")));
    let mut all = Vec::new();
    for guest in started_guests {
        let address = guest.address(guests.limit, context).await?;
        keys.add_host(
            &guest.name,
            &address,
            &SshGateway {
                address: context.address,
                ssh: &context.options.ssh,
                config: context.options.ssh_config.as_deref(),
            },
        )?;
        let connected = guest.connect(guests.limit, &keys, context).await?;
        let record = GuestRecord {
            name: guest.name,
            domain: guest.domain,
            address,
            cpus: guest.size.cpus,
            memory: guest.size.memory,
            virt_type: virt,
            image: base.clone(),
            xml: guest.xml,
            started_in: elapsed(guest.started),
        };
        all.push((connected.worker, record, guest.console));
    }
    Ok(RunningGuests { all, folder, keys })
}

/// A guest that a profile would create.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedGuest {
    /// Its name as a worker.
    pub name: WorkerName,
    /// Its number of CPUs.
    pub cpus: u32,
    /// Its memory.
    #[schemars(with = "String")]
    pub memory: Bytes,
    /// The size of its disk.
    #[schemars(with = "String")]
    pub disk: Bytes,
    /// The image that its disk would be based on.
    pub image: String,
    /// The hypervisor that would run it; none if that cannot be determined.
    pub virt_type: Option<VirtType>,
}

/// Result of checking the guests of a profile without creating any.
#[derive(Debug, Default)]
pub(crate) struct GuestPreflight {
    pub(crate) guests: Vec<PlannedGuest>,
    pub(crate) obstacles: Vec<ProfileErrorKind>,
    /// Why they would be emulated in software although that was not requested.
    pub(crate) software: Option<String>,
    /// The knobs that must be set before they can start.
    pub(crate) required_knobs: Vec<KnobSetting>,
}

impl GuestPreflight {
    /// Records a failure as an obstacle.
    fn ok<T>(&mut self, result: Result<T, ProfileErrorKind>) -> Option<T> {
        result.map_err(|reason| self.obstacles.push(reason)).ok()
    }
}

/// Checks whether the guests of a profile can be created on a host, and describes them. What prevents it is part of the
/// result.
pub(crate) async fn preflight(
    guests: &GuestsConfig,
    context: &HostContext<'_>,
) -> Result<GuestPreflight, ProfileErrorKind> {
    let (group, worker) = (context.group, context.group.worker());
    let mut outlook = GuestPreflight::default();
    let facts = worker.facts().await?;
    let detected = HostParams::detect(worker).await?;
    let params = detected.overridden_by(context.params);
    let sizes = outlook.ok(sizing::plan_guests(guests, &params, &facts)).unwrap_or_default();
    let has_libvirt = outlook.ok(virsh::require_libvirt(group).await).is_some();
    outlook.ok(require_program(group, "qemu-img", "qemu-utils").await);
    let installs =
        guests.xml.is_some() || outlook.ok(require_program(group, "virt-install", "virtinst").await).is_some();
    let image = outlook.ok(image(guests, &params));
    if let Some(image) = &image {
        let options = image::ImageOptions { stall: CHECK_TIMEOUT, ..image::ImageOptions::default() };
        outlook.ok(image::check(worker, image, &options).await.map_err(ProfileErrorKind::from));
    }
    let mut virt_type = None;
    if has_libvirt {
        outlook.ok(virsh::require_network_defined(group, &guests.network).await);
        let folder = worker.new_scratch(Some(guest_folder(context).await?)).await?;
        // libvirt runs guests as a user of its own, which needs access to the boot sector of the probe.
        run(group, ["chmod", "0711", folder.path()]).await?;
        let resolved = virt::resolve(guests.virt_type, &facts.arch, guests.qemu_bin.as_deref(), &folder, group).await;
        folder.close().await?;
        if let Some((virt, software)) = outlook.ok(resolved) {
            outlook.software = software;
            virt_type =
                outlook.ok(virsh::require_emulator(group, virt, guests.qemu_bin.as_deref()).await).map(|()| virt);
        }
    }
    if let (Some(size), Some(image)) = (sizes.first(), &image) {
        let base = placeholder_image(image);
        let spec = placeholder_spec(guests, size, virt_type.unwrap_or(VirtType::Qemu), &base, params.hugepage_kb);
        let template = outlook.ok(check_definition(&spec, installs, context).await).flatten();
        let demand = HugePageDemand::new(guests, template.as_ref(), &params, &detected);
        outlook.required_knobs = demand.map(|demand| demand.required_knobs(&sizes)).unwrap_or_default();
    }
    let image = image.map(|image| image.to_string()).unwrap_or_default();
    let planned = |(index, size): (usize, &GuestSize)| PlannedGuest {
        name: context.guest_name(index + 1),
        cpus: size.cpus,
        memory: size.memory,
        disk: guests.disk,
        image: image.clone(),
        virt_type,
    };
    outlook.guests = sizes.iter().enumerate().map(planned).collect();
    Ok(outlook)
}

/// Time limit for an image server's response to a check without download.
const CHECK_TIMEOUT: Nanos = Nanos(10_000_000_000);

/// The specification of a guest that does not exist, for checking what is made from it.
fn placeholder_spec<'a>(
    guests: &'a GuestsConfig,
    size: &'a GuestSize,
    virt_type: VirtType,
    base_image: &'a BaseImage,
    hugepage_kb: Option<u64>,
) -> DomainSpec<'a> {
    DomainSpec {
        name: "weighbridge-guest",
        guests,
        size,
        virt_type,
        base_image,
        disk: "/weighbridge/disk",
        seed: "/weighbridge/seed",
        console: "/weighbridge/console",
        mac: "52:54:00:00:00:01",
        hugepage_kb,
        uses_huge_pages: false,
    }
}

/// The image as far as it is known before its files are prepared.
fn placeholder_image(image: &image::ImageSpec) -> BaseImage {
    let path = |name: &str| format!("/weighbridge/{name}");
    BaseImage {
        name: image.to_string(),
        path: path("image"),
        format: image::ImageFormat::Qcow2,
        sha256: String::new(),
        boot: if image.has_boot_loader() {
            image::GuestBoot::Disk
        } else {
            image::GuestBoot::Kernel {
                kernel: path("kernel"),
                initrd: path("initrd"),
                arguments: "root=LABEL=weighbridge".to_owned(),
            }
        },
    }
}

/// Checks the user's XML template, which is returned filled in with dummy paths, or virt-install's extra arguments.
async fn check_definition(
    spec: &DomainSpec<'_>,
    has_virt_install: bool,
    context: &HostContext<'_>,
) -> Result<Option<FilledTemplate>, ProfileErrorKind> {
    match &spec.guests.xml {
        Some(file) => template::fill(spec, &context.asset(file)?).map(Some),
        None if spec.guests.virt_install_extra.is_empty() || !has_virt_install => Ok(None),
        None => domain::check_extra_arguments(spec, context.group).await.map(|()| None),
    }
}

struct StartedGuest {
    name: WorkerName,
    domain: String,
    console: String,
    xml: String,
    size: GuestSize,
    started: Instant,
}

impl StartedGuest {
    /// Waits until it has an address.
    async fn address(&self, limit: Nanos, context: &HostContext<'_>) -> Result<String, ProfileErrorKind> {
        while elapsed(self.started) < limit {
            self.require_alive(context).await?;
            if let Some(address) = virsh::address(context.group, &self.domain).await? {
                return Ok(address);
            }
            sleep(POLL_INTERVAL).await;
        }
        Err(ProfileErrorKind::NoAddress { guest: self.name.clone(), limit, console: self.console_tail(context).await })
    }

    async fn connect(
        &self,
        limit: Nanos,
        keys: &GuestSshKeys,
        context: &HostContext<'_>,
    ) -> Result<ConnectedHost, ProfileErrorKind> {
        // Its name is an alias in ssh's configuration.
        let address = self.name.as_str().parse()?;
        let host = Host { name: self.name.clone(), address, params: HostParams::default() };
        let options = ConnectOptions { ssh_config: Some(keys.config()), needs_root: true, ..context.options.clone() };
        loop {
            self.require_alive(context).await?;
            match connect(&host, context.program, &options).await {
                Ok(connected) => return Ok(connected),
                Err(last) if elapsed(self.started) >= limit || !is_transient(&last) => {
                    let last = Box::new(last);
                    return Err(ProfileErrorKind::NotReached {
                        guest: self.name.clone(),
                        limit,
                        last,
                        console: self.console_tail(context).await,
                    });
                }
                Err(_) => sleep(POLL_INTERVAL).await,
            }
        }
    }

    async fn require_alive(&self, context: &HostContext<'_>) -> Result<(), ProfileErrorKind> {
        match virsh::state(context.group, &self.domain).await?.as_deref() {
            None | Some("shut off" | "crashed" | "dying") => Err(ProfileErrorKind::GuestEnded {
                guest: self.name.clone(),
                console: self.console_tail(context).await,
            }),
            Some(_) => Ok(()),
        }
    }

    async fn console_tail(&self, context: &HostContext<'_>) -> String {
        last_lines(&String::from_utf8_lossy(&console(context.group.worker(), &self.console).await), MAX_CONSOLE_LINES)
    }
}

/// Whether a connection error may go away while the guest starts.
fn is_transient(error: &FleetError) -> bool {
    use wb_fleet::ConnectErrorKind;
    !matches!(
        error.kind.as_ref(),
        ConnectErrorKind::Architecture { .. }
            | ConnectErrorKind::Kernel { .. }
            | ConnectErrorKind::NoSpace { .. }
            | ConnectErrorKind::Compress(_)
            | ConnectErrorKind::SshNotStarted(_)
    )
}

/// Reads a guest's console output from the host; empty if it cannot be read.
pub async fn console(host: &Worker, path: &str) -> Vec<u8> {
    host.get(path, MAX_CONSOLE_SIZE).await.unwrap_or_default()
}

fn elapsed(since: Instant) -> Nanos {
    Nanos(since.elapsed().as_nanos().try_into().unwrap_or(u64::MAX))
}

async fn prepare_base(
    guests: &GuestsConfig,
    params: &HostParams,
    context: &HostContext<'_>,
) -> Result<BaseImage, ProfileErrorKind> {
    let image = image(guests, params)?;
    let report = |progress: &image::request::ImageProgress| context.notify(progress.to_string());
    Ok(image::prepare(context.group.worker(), &image, &image::ImageOptions::default(), &report).await?)
}

/// The requested image, or that of the guests' or the host's distribution.
fn image(guests: &GuestsConfig, params: &HostParams) -> Result<image::ImageSpec, ProfileErrorKind> {
    if let Some(image) = &guests.image {
        return Ok(image.clone());
    }
    let distro = params.guest_distro.as_ref().or(params.distro.as_ref());
    distro.ok_or(ProfileErrorKind::NoDistribution)?.parse().map_err(ProfileErrorKind::NoSuchImage)
}

/// A folder on the host that libvirt's user can access.
async fn guest_folder(context: &HostContext<'_>) -> Result<&'static str, ProfileErrorKind> {
    const LIBVIRT_IMAGES: &str = "/var/lib/libvirt/images";
    let exists = run(context.group, ["test", "-d", LIBVIRT_IMAGES]).await;
    Ok(if exists.is_ok() { LIBVIRT_IMAGES } else { "/var/tmp" })
}

/// A unique, locally administered MAC address for a guest (its second bit is set).
fn mac(domain: &str) -> String {
    let digest = wb_model::Sha256::digest(domain.as_bytes());
    let digits = digest.as_str();
    format!("52:54:00:{}:{}:{}", &digits[..2], &digits[2..4], &digits[4..6])
}

/// Creates a guest's disk from an image, which is never written to.
async fn create_disk(
    guests: &GuestsConfig,
    base: &BaseImage,
    disk: &str,
    context: &HostContext<'_>,
) -> Result<(), ProfileErrorKind> {
    let (format, size) = (format_name(guests.image_format), guests.disk.0.to_string());
    match guests.image_format {
        image::ImageFormat::Qcow2 => {
            let (base_format, base_path) = (format_name(base.format), base.path.as_str());
            run(
                context.group,
                ["qemu-img", "create", "-q", "-f", format, "-b", base_path, "-F", base_format, disk, &size],
            )
            .await?;
        }
        image::ImageFormat::Raw => {
            run(context.group, ["qemu-img", "convert", "-O", format, &base.path, disk]).await?;
            run(context.group, ["qemu-img", "resize", "-q", "-f", format, disk, &size]).await?;
        }
    }
    Ok(())
}

//! The data of a profile: a state of a host.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_diagnostics::{Suggestion, UnknownName, humanize_serde_error, suggest};
use wb_knobs::knobs;
use wb_knobs::tune::KnobSetting;
use wb_model::secrets::mask_lines;
use wb_model::{Bytes, Nanos, ProfileName};
use wb_sys::undo::ManagedResource;

use crate::boot;
use crate::image::{ImageFormat, ImageSpec};

/// A state that is applied to a host and reverted.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Profile {
    /// Its purpose, in one line.
    pub summary: String,
    /// Names of knob sets; knobs of them that a host cannot set are reported and skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Knobs by name or `NAME@TARGET`; it is an error if one cannot be set.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub knobs: BTreeMap<String, ProfileKnobValue>,
    /// Files to write on the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<HostFile>,
    /// Commands that apply and revert something.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ReversibleCommand>,
    /// Additional kernel parameters of the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernel_arguments: Vec<String>,
    /// Virtual machines that measure in place of the host.
    pub guests: Option<GuestsConfig>,
    /// The tests to run in it; `$@` stands for the requested ones.
    pub tests: Option<Vec<String>>,
}

impl Profile {
    /// Whether it leaves a host unchanged.
    pub fn is_empty(&self) -> bool {
        let Self { sets, knobs, files, commands, kernel_arguments, guests, .. } = self;
        let lists = [sets.is_empty(), files.is_empty(), commands.is_empty(), kernel_arguments.is_empty()];
        lists.into_iter().all(|is_empty| is_empty) && knobs.is_empty() && guests.is_none()
    }

    /// The state alone, without summary and tests.
    #[must_use]
    pub fn state(&self) -> Self {
        Self { summary: String::new(), tests: None, ..self.clone() }
    }

    /// A copy for the record, in which likely secrets in the user's texts are masked.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut masked = self.clone();
        for file in &mut masked.files {
            file.text = mask_lines(&file.text);
        }
        for ReversibleCommand { name: _, check: is, apply, revert } in &mut masked.commands {
            for script in [is, apply, revert] {
                *script = mask_lines(script);
            }
        }
        masked
    }

    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("what was parsed from TOML can be written as TOML")
    }

    /// The first error in it that its types do not exclude.
    pub(crate) fn validate(&self) -> Option<ProfileFault> {
        let relative = self.files.iter().find(|file| !file.path.starts_with('/'));
        let relative = relative.map(|file| format!("invalid path `{}`: expected an absolute path", file.path));
        let mode = self.files.iter().find(|file| file.permissions().is_none());
        let mode = mode.map(|file| format!("invalid file mode `{}`: expected octal digits such as `0644`", file.mode));
        let argument = || self.kernel_arguments.iter().find_map(|argument| boot::argument_error(argument));
        relative
            .or(mode)
            .map(ProfileFault::from)
            .or_else(|| self.invalid_knob())
            .or_else(|| argument().map(ProfileFault::from))
    }

    /// The settings of its own knobs, by the names in the profile.
    pub(crate) fn knob_settings(&self) -> impl Iterator<Item = KnobSetting> {
        // The knobs of profiles are checked when they are read.
        self.knobs.iter().map(|(key, value)| KnobSetting::from_checked_key(key, value.to_string()))
    }

    /// The first knob that does not exist, or has a value that no machine accepts.
    fn invalid_knob(&self) -> Option<ProfileFault> {
        self.knobs.iter().find_map(|(key, value)| {
            let message = match KnobSetting::new(key, value.to_string()) {
                Ok(setting) => return setting.check_value().err().map(ProfileFault::from),
                Err(message) => message,
            };
            let (knob, _) = key.split_once('@').unwrap_or((key, ""));
            Some(ProfileFault { message, suggestion: suggest(knob, knobs::all().iter().map(|knob| knob.name())) })
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProfileFault {
    pub(crate) message: String,
    pub(crate) suggestion: Option<Suggestion>,
}

impl From<String> for ProfileFault {
    fn from(message: String) -> Self {
        Self { message, suggestion: None }
    }
}

impl ProfileFault {
    pub(crate) fn from_serde(message: &str) -> Self {
        let suggestion = UnknownName::parse(message).and_then(|unknown| unknown.suggestion());
        Self { message: humanize_serde_error(message), suggestion }
    }
}

/// The value of a knob in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ProfileKnobValue {
    /// On or off.
    Flag(bool),
    /// A number.
    Number(i64),
    /// A string.
    Text(String),
}

impl fmt::Display for ProfileKnobValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A file that is on a host while a profile is applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostFile {
    /// Its absolute path.
    pub path: String,
    /// Its content.
    pub text: String,
    /// Its permissions in octal digits, if it did not exist before.
    #[serde(default = "default_mode")]
    pub mode: String,
}

impl HostFile {
    /// None if the mode is invalid.
    pub(crate) fn permissions(&self) -> Option<u32> {
        u32::from_str_radix(&self.mode, 8).ok().filter(|mode| *mode <= 0o7777)
    }

    pub(crate) fn resource(&self) -> ManagedResource {
        // Profiles with an invalid mode are refused when read.
        ManagedResource::File { path: self.path.clone(), mode: self.permissions().unwrap_or(0o644) }
    }
}

fn default_mode() -> String {
    "0644".to_owned()
}

/// A pair of commands for `sh -c` that apply and revert something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReversibleCommand {
    /// A short name.
    pub name: String,
    /// Checks by its exit status whether it is applied.
    pub check: String,
    /// Applies it.
    pub apply: String,
    /// Reverts it.
    pub revert: String,
}

/// Virtual machines of a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct GuestsConfig {
    /// Number of guests.
    pub count: GuestCount,
    /// CPUs of each guest; by default, an equal share of the CPUs for guests.
    pub cpus: Option<u32>,
    /// Memory of each guest; by default, an equal share of the memory for guests.
    pub memory: Option<Bytes>,
    /// Placement of their CPUs.
    pub placement: CpuPinning,
    /// Base image of their disks; by default, that of the host's `guest-distro`, or of the host's own distribution.
    pub image: Option<ImageSpec>,
    /// Size of their disks.
    pub disk: Bytes,
    /// Format of their disks.
    pub image_format: ImageFormat,
    /// The libvirt network that they are connected to.
    pub network: String,
    /// The hypervisor that runs them.
    pub virt_type: VirtType,
    /// Path of the QEMU program; by default, libvirt's choice.
    pub qemu_bin: Option<String>,
    /// Additional arguments for virt-install, quoted as for a shell.
    pub virt_install_extra: String,
    /// The domain's XML template in place of virt-install's: a file in an asset folder, or the text itself.
    pub xml: Option<String>,
    /// Time limit for their start.
    pub limit: Nanos,
}

impl Default for GuestsConfig {
    fn default() -> Self {
        Self {
            count: GuestCount::Exactly(1),
            cpus: None,
            memory: None,
            placement: CpuPinning::Free,
            image: None,
            disk: Bytes(20 << 30),
            image_format: ImageFormat::Qcow2,
            network: "default".to_owned(),
            virt_type: VirtType::Auto,
            qemu_bin: None,
            virt_install_extra: String::new(),
            xml: None,
            limit: Nanos(600_000_000_000),
        }
    }
}

/// Number of guests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawCount", into = "RawCount")]
#[schemars(with = "RawCount")]
pub enum GuestCount {
    /// A fixed number.
    Exactly(u32),
    /// As many as fit on the CPUs for guests.
    Fill,
    /// As many as fit on this many times the host's CPUs.
    Times(f64),
}

/// A number, `fill`, or `x1.5`.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum RawCount {
    Number(u32),
    Word(String),
}

impl TryFrom<RawCount> for GuestCount {
    type Error = String;
    fn try_from(raw: RawCount) -> Result<Self, String> {
        let times =
            |word: &str| word.strip_prefix('x')?.parse().ok().filter(|times: &f64| times.is_finite() && *times > 0.0);
        match raw {
            RawCount::Number(0) => Err("invalid count of guests `0`: expected at least one".to_owned()),
            RawCount::Number(count) => Ok(Self::Exactly(count)),
            RawCount::Word(word) if word == "fill" => Ok(Self::Fill),
            RawCount::Word(word) => times(&word).map(Self::Times).ok_or_else(|| {
                format!("invalid count of guests `{word}`: expected a number, `fill`, or `x1.5` for 1.5 times the host's CPUs")
            }),
        }
    }
}

impl From<GuestCount> for RawCount {
    fn from(count: GuestCount) -> Self {
        match count {
            GuestCount::Exactly(count) => Self::Number(count),
            GuestCount::Fill => Self::Word("fill".to_owned()),
            GuestCount::Times(times) => Self::Word(format!("x{times}")),
        }
    }
}

/// Placement of guests' CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPinning {
    /// Scheduled by the host on any CPU.
    Free,
    /// Each pinned to a CPU of its own; memory is from their NUMA nodes and huge pages, disks have an I/O thread, and
    /// all other processes on the host are kept off their CPUs if there are others.
    Pinned,
}

/// Hypervisor of guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VirtType {
    /// KVM if it works, otherwise emulation in software with a message.
    Auto,
    /// Hardware virtualisation with KVM.
    Kvm,
    /// Emulation in software.
    Qemu,
}

impl VirtType {
    /// Its name in libvirt.
    pub(crate) fn name(self) -> &'static str {
        if self == Self::Qemu { "qemu" } else { "kvm" }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct NamedProfile {
    /// The first part of cells' names.
    pub name: ProfileName,
    pub profile: Profile,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_numbers_fill_or_factors() {
        let read = |json: &str| serde_json::from_str::<GuestCount>(json).map_err(|error| error.to_string());
        assert_eq!(read("3"), Ok(GuestCount::Exactly(3)));
        assert_eq!(read("\"fill\""), Ok(GuestCount::Fill));
        assert_eq!(read("\"x1.5\""), Ok(GuestCount::Times(1.5)));
        for invalid in ["0", "\"x0\"", "\"all\"", "\"xnan\""] {
            assert!(read(invalid).is_err(), "{invalid}");
        }
        assert_eq!(serde_json::to_string(&GuestCount::Times(1.5)).unwrap(), "\"x1.5\"");
    }
}

//! What a profile is: a state of a host, as data.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_knobs::knobs;
use wb_knobs::tune::KnobSetting;
use wb_model::secrets::mask_lines;
use wb_model::serde_message::humanize_serde_error;
use wb_model::{Bytes, Nanos, ProfileName};
use wb_plan::suggestion::{suggest, suggest_expected};
use wb_sys::undo::Step;

use crate::boot;
use crate::image::{ImageFormat, ImageSpec};

/// A state that a host is put into and brought back from.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Profile {
    /// What it is for, in a line.
    pub summary: String,
    /// Named sets of knobs; what of them cannot be set on a host is told and left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<String>,
    /// Knobs by name or `NAME@TARGET`; one that cannot be set is an error.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub knobs: BTreeMap<String, ProfileKnobValue>,
    /// Files that it puts on the host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<HostFile>,
    /// What commands set and put back.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<ReversibleCommand>,
    /// What the host's kernel is started with, beside its own arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernel_arguments: Vec<String>,
    /// Machines that measure in the host's place.
    pub guests: Option<GuestsConfig>,
    /// The tests that it is measured with; `$@` stands for those that were asked for.
    pub tests: Option<Vec<String>>,
}

impl Profile {
    /// Whether it leaves a host as it is.
    pub fn is_empty(&self) -> bool {
        let Self { sets, knobs, files, commands, kernel_arguments, guests, .. } = self;
        let lists = [sets.is_empty(), files.is_empty(), commands.is_empty(), kernel_arguments.is_empty()];
        lists.into_iter().all(|is_empty| is_empty) && knobs.is_empty() && guests.is_none()
    }

    /// What it makes of a host, without what it is for and what it is measured with.
    #[must_use]
    pub fn state(&self) -> Self {
        Self { summary: String::new(), tests: None, ..self.clone() }
    }

    /// As it is recorded: what sounds like a secret in texts of the user's is masked.
    #[must_use]
    pub fn without_secrets(&self) -> Self {
        let mut shown = self.clone();
        for file in &mut shown.files {
            file.text = mask_lines(&file.text);
        }
        for ReversibleCommand { name: _, check: is, apply, revert } in &mut shown.commands {
            for script in [is, apply, revert] {
                *script = mask_lines(script);
            }
        }
        shown
    }

    /// As a file has it.
    pub fn to_toml(&self) -> String {
        // It was read from such a text.
        toml::to_string(self).unwrap_or_default()
    }

    /// What is wrong with it that its types do not say.
    pub(crate) fn validate(&self) -> Option<ProfileFault> {
        let relative = self.files.iter().find(|file| !file.path.starts_with('/'));
        let relative = relative.map(|file| format!("`{}` is no absolute path", file.path));
        let mode = self.files.iter().find(|file| file.permissions().is_none());
        let mode = mode.map(|file| format!("`{}` is no mode of a file: write `0644`", file.mode));
        let word = || self.kernel_arguments.iter().find_map(|word| boot::argument_error(word));
        relative
            .or(mode)
            .map(ProfileFault::from)
            .or_else(|| self.unknown_knob())
            .or_else(|| word().map(ProfileFault::from))
    }

    fn unknown_knob(&self) -> Option<ProfileFault> {
        self.knobs.iter().find_map(|(key, value)| {
            let what = KnobSetting::new(key, value.to_string()).err()?;
            let (knob, _) = key.split_once('@').unwrap_or((key, ""));
            let near = suggest(knob, knobs::all().iter().map(|knob| knob.name()));
            Some(ProfileFault { what, near: near.map(str::to_owned) })
        })
    }
}

/// What is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProfileFault {
    /// What.
    pub(crate) what: String,
    /// A name that may have been meant.
    pub(crate) near: Option<String>,
}

impl From<String> for ProfileFault {
    fn from(what: String) -> Self {
        Self { what, near: None }
    }
}

impl ProfileFault {
    /// A message of serde, with the nearest name where one is unknown.
    pub(crate) fn of_serde(message: &str) -> Self {
        Self { what: humanize_serde_error(message), near: suggest_expected(message).map(str::to_owned) }
    }
}

/// The beginning of a way out, where somebody may have meant another name.
pub(crate) fn did_you_mean(near: Option<&str>) -> String {
    near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default()
}

/// The value of a knob, as files write it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ProfileKnobValue {
    /// On or off.
    Flag(bool),
    /// A number.
    Number(i64),
    /// A word.
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

/// A file that is on a host while a profile is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostFile {
    /// Its path, absolute.
    pub path: String,
    /// What is in it.
    pub text: String,
    /// Its permissions, in octal digits, where it was not there before.
    #[serde(default = "default_mode")]
    pub mode: String,
}

impl HostFile {
    /// Its mode as a number; none where it is no such thing.
    pub(crate) fn permissions(&self) -> Option<u32> {
        u32::from_str_radix(&self.mode, 8).ok().filter(|mode| *mode <= 0o7777)
    }

    /// The change of a machine that puts it there.
    pub(crate) fn step(&self) -> Step {
        // A profile with another mode is not read.
        Step::File { path: self.path.clone(), mode: self.permissions().unwrap_or(0o644) }
    }
}

fn default_mode() -> String {
    "0644".to_owned()
}

/// A command that sets something, and one that puts it back. Both are for `sh -c`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReversibleCommand {
    /// What it is, in a word or two.
    pub name: String,
    /// Says by its exit status whether it is so.
    pub check: String,
    /// Makes it so.
    pub apply: String,
    /// Makes it otherwise.
    pub revert: String,
}

/// Machines that are made for a profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct GuestsConfig {
    /// How many there are.
    pub count: GuestCount,
    /// The CPUs of each; without, all the CPUs for guests.
    pub cpus: Option<u32>,
    /// The memory of each; without, an even share of the memory for guests.
    pub memory: Option<Bytes>,
    /// Where their CPUs run.
    pub placement: CpuPinning,
    /// What their disks are made from; without, the image of the host's `guest-distro`, or of its own distribution.
    pub image: Option<ImageSpec>,
    /// How large their disks are.
    pub disk: Bytes,
    /// The format of what lies upon the image.
    pub image_format: ImageFormat,
    /// libvirt's network that they are in.
    pub network: String,
    /// What runs them.
    pub virt_type: VirtType,
    /// Another program than the one that libvirt would take.
    pub qemu_bin: Option<String>,
    /// More arguments of virt-install, as one would type them.
    pub virt_install_extra: String,
    /// The domain's XML, in place of what virt-install makes: a file of an asset folder, or the text itself.
    pub xml: Option<String>,
    /// How long they may take to answer.
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

/// How many guests there are.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "RawCount", into = "RawCount")]
#[schemars(with = "RawCount")]
pub enum GuestCount {
    /// So many.
    Exactly(u32),
    /// As many as the CPUs for guests are enough for.
    Fill,
    /// As many as so many times the host's CPUs are enough for.
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
            RawCount::Number(0) => Err("there is at least one guest".to_owned()),
            RawCount::Number(count) => Ok(Self::Exactly(count)),
            RawCount::Word(word) if word == "fill" => Ok(Self::Fill),
            RawCount::Word(word) => times(&word).map(Self::Times).ok_or_else(|| {
                format!("`{word}` is no count of guests: a number, `fill`, or `x1.5` for 1.5 times the host's CPUs")
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

/// Where the CPUs of guests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CpuPinning {
    /// Wherever the host puts them.
    Free,
    /// Each on a CPU of its own; memory is of their nodes and of huge pages, disks have a thread of their own, and
    /// everything else on the host stays off their CPUs where there are others.
    Pinned,
}

/// What runs guests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VirtType {
    /// The processor, where it can; software where it cannot, which is said.
    Auto,
    /// The processor.
    Kvm,
    /// Software.
    Qemu,
}

impl VirtType {
    /// As libvirt calls it.
    pub(crate) fn name(self) -> &'static str {
        if self == Self::Qemu { "qemu" } else { "kvm" }
    }
}

/// A profile under its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedProfile {
    /// Its name, the first part of cells' names.
    pub name: ProfileName,
    /// What it is.
    pub profile: Profile,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_numbers_words_or_factors() {
        let read = |json: &str| serde_json::from_str::<GuestCount>(json).map_err(|error| error.to_string());
        assert_eq!(read("3"), Ok(GuestCount::Exactly(3)));
        assert_eq!(read("\"fill\""), Ok(GuestCount::Fill));
        assert_eq!(read("\"x1.5\""), Ok(GuestCount::Times(1.5)));
        for wrong in ["0", "\"x0\"", "\"all\"", "\"xnan\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(serde_json::to_string(&GuestCount::Times(1.5)).unwrap(), "\"x1.5\"");
    }
}

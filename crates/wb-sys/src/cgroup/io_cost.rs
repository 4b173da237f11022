//! The I/O cost controller (`io.cost.model`, `io.cost.qos`) of cgroup v2: its state, and how its parameters are set.
//!
//! Source: the kernel's Documentation/admin-guide/cgroup-v2.rst, section IO, and block/blk-iocost.c for the formats.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wb_model::{IocostModel, IocostQos};

use crate::undo::ManagedResource;

/// State of the controller for a device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IocostState {
    /// Whether it controls the device
    pub enabled: bool,
    /// Whether its model was set, rather than chosen by the kernel
    pub is_model_set: bool,
    /// Its model
    pub model: IocostModel,
    /// Its targets
    pub qos: IocostQos,
}

impl IocostState {
    /// Parses the contents of `io.cost.model` and `io.cost.qos` for a device by its number (`254:0`). None if the
    /// controller has never been used for the device, or a line is invalid.
    pub fn parse(model: &str, qos: &str, device: &str) -> Option<Self> {
        let model = Line::find(model, device)?;
        let qos = Line::find(qos, device)?;
        Some(Self {
            enabled: qos.text("enable")? == "1",
            is_model_set: model.text("ctrl")? == "user",
            model: IocostModel {
                rbps: model.number("rbps")?,
                rseqiops: model.number("rseqiops")?,
                rrandiops: model.number("rrandiops")?,
                wbps: model.number("wbps")?,
                wseqiops: model.number("wseqiops")?,
                wrandiops: model.number("wrandiops")?,
            },
            qos: IocostQos {
                rpct: qos.number("rpct")?,
                rlat: qos.number("rlat")?,
                wpct: qos.number("wpct")?,
                wlat: qos.number("wlat")?,
                min: qos.number("min")?,
                max: qos.number("max")?,
            },
        })
    }
}

/// The line of a device: `254:0 name=value name=value`.
struct Line<'a>(&'a str);

impl<'a> Line<'a> {
    fn find(text: &'a str, device: &str) -> Option<Self> {
        text.lines().find_map(|line| line.strip_prefix(device)?.strip_prefix(' ')).map(Self)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.split_whitespace().find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }
}

/// State of [`model_resource`] and [`qos_resource`] in which the kernel decides.
pub const DEFAULT: &str = "default";

/// A resource whose state is the model of a device, or [`DEFAULT`]. `point` is the mount point of cgroup v2.
pub fn model_resource(point: &str, device: &str) -> ManagedResource {
    device_resource("model", &format!("{point}/io.cost.model"), device, "ctrl=auto")
}

pub fn model_state(model: &IocostModel) -> String {
    format!("ctrl=user model=linear {model}\n")
}

/// A resource whose state is the line of targets of a device, or [`DEFAULT`] where the controller is off for it.
pub fn qos_resource(point: &str, device: &str) -> ManagedResource {
    device_resource("QoS", &format!("{point}/io.cost.qos"), device, "enable=0 ctrl=auto")
}

/// State of [`qos_resource`] with the controller switched on, and these targets.
pub fn qos_state(qos: &IocostQos) -> String {
    format!("enable=1 ctrl=user {qos}\n")
}

/// The line of a device in a file. The kernel prints none before the first use, and its own figures after `initial` was
/// written, so all that begins like `initial` is one state.
fn device_resource(what: &str, file: &str, device: &str, initial: &str) -> ManagedResource {
    // A step with commands, as the files have a line for each device.
    const READ: &str = r#"while read -r number state; do [ "$number" = "$2" ] || continue
case $state in "$3"*) ;; *) echo "$state"; exit;; esac; done < "$1"; echo default"#;
    const WRITE: &str = r#"case $1 in default) echo "$3 $4";; *) echo "$3 $1";; esac > "$2""#;
    let words = |script: &str, arguments: &[&str]| {
        ["sh", "-c", script, "sh"].iter().chain(arguments).map(|word| (*word).to_owned()).collect()
    };
    ManagedResource::Command {
        name: format!("I/O cost {what} of {device}"),
        read: words(READ, &[file, device, initial]),
        write: words(WRITE, &["{}", file, device, initial]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: &str = "8:0 ctrl=auto model=linear rbps=1 rseqiops=1 rrandiops=1 wbps=1 wseqiops=1 wrandiops=1\n\
        259:5 ctrl=user model=linear rbps=2992129542 rseqiops=337745 rrandiops=370705 wbps=2232405244 \
        wseqiops=260917 wrandiops=256225\n";
    const QOS: &str = "8:0 enable=0 ctrl=auto rpct=0.00 rlat=250000 wpct=0.00 wlat=250000 min=1.00 max=10000.00\n\
        259:5 enable=1 ctrl=user rpct=95.00 rlat=11649 wpct=95.00 wlat=12681 min=8.83 max=8.83\n";

    #[test]
    fn parameters_are_read_as_they_are_written() {
        let state = IocostState::parse(MODEL, QOS, "259:5").unwrap();
        assert!(state.enabled && state.is_model_set);
        assert!(MODEL.contains(model_state(&state.model).trim()), "{}", state.model);
        assert!(QOS.contains(qos_state(&state.qos).trim()), "{}", state.qos);
        let other = IocostState::parse(MODEL, QOS, "8:0").unwrap();
        assert!(!other.enabled && !other.is_model_set);
        assert_eq!(IocostState::parse(MODEL, QOS, "59:5"), None);
        assert_eq!(IocostState::parse("8:0 ctrl=user rbps=many\n", QOS, "8:0"), None);
    }

    #[test]
    fn a_device_that_the_kernel_decides_about_is_in_the_default_state() {
        let folder = tempfile::tempdir().unwrap();
        let point = folder.path().display().to_string();
        let read = |resource: ManagedResource| {
            let ManagedResource::Command { read, .. } = resource else { unreachable!("it is a command") };
            let output = std::process::Command::new(&read[0]).args(&read[1..]).output().unwrap();
            String::from_utf8(output.stdout).unwrap()
        };
        std::fs::write(folder.path().join("io.cost.model"), MODEL).unwrap();
        std::fs::write(folder.path().join("io.cost.qos"), QOS).unwrap();
        let device = |number: &str| [read(model_resource(&point, number)), read(qos_resource(&point, number))];
        assert_eq!(device("8:0"), ["default\n", "default\n"]);
        assert_eq!(device("8:16"), ["default\n", "default\n"]);
        let state = IocostState::parse(MODEL, QOS, "259:5").unwrap();
        assert_eq!(device("259:5"), [model_state(&state.model), qos_state(&state.qos)]);
    }
}

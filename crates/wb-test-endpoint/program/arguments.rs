//! The command line.

/// Which side it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Role {
    Listen,
    Dial,
}

/// What it is to do.
pub struct Arguments {
    pub role: Role,
    /// What it does wrong; empty: nothing.
    pub fault: String,
    pub transport: String,
    pub security: String,
    pub muxer: String,
    pub host: String,
    pub address: String,
    pub port: u16,
    /// A port that somebody else may have, in place of the requested one.
    pub taken: u16,
    pub send: u64,
    pub receive: u64,
    pub iterations: u64,
    /// The seconds of each transfer, in place of its bytes.
    pub duration: Option<f64>,
    /// Seconds between two reports of such a transfer.
    pub interval: f64,
    pub direction: String,
}

impl Arguments {
    pub fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let role = match words.next().as_deref() {
            Some("listen") => Role::Listen,
            Some("dial") => Role::Dial,
            other => return Err(format!("expected listen or dial, found {other:?}")),
        };
        let mut arguments = Self {
            role,
            fault: String::new(),
            transport: String::new(),
            security: String::new(),
            muxer: String::new(),
            host: "127.0.0.1".to_owned(),
            address: String::new(),
            port: 0,
            taken: 0,
            send: 0,
            receive: 0,
            iterations: 0,
            duration: None,
            interval: 0.1,
            direction: String::new(),
        };
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("{flag} lacks a value"))?;
            let number = || value.parse::<u64>().map_err(|error| format!("{flag} {value}: {error}"));
            let port = || value.parse::<u16>().map_err(|error| format!("{flag} {value}: {error}"));
            let seconds = || value.parse::<f64>().map_err(|error| format!("{flag} {value}: {error}"));
            match flag.as_str() {
                "--fault" => arguments.fault = value,
                "--transport" => arguments.transport = value,
                "--security" => arguments.security = value,
                "--muxer" => arguments.muxer = value,
                "--host" => arguments.host = value,
                "--address" => arguments.address = value,
                "--port" => arguments.port = port()?,
                "--taken" => arguments.taken = port()?,
                "--send" => arguments.send = number()?,
                "--receive" => arguments.receive = number()?,
                "--iterations" => arguments.iterations = number()?,
                "--duration" => arguments.duration = Some(seconds()?),
                "--interval" => arguments.interval = seconds()?,
                "--direction" => arguments.direction = value,
                _ => return Err(format!("unknown flag {flag}")),
            }
        }
        Ok(arguments)
    }

    pub fn has_fault(&self, fault: &str) -> bool {
        self.fault == fault
    }

    /// Prints what a connection uses.
    pub fn print_negotiated(&self) {
        println!("{{\"negotiated\": {}}}", self.negotiated());
    }

    /// What a connection uses, as JSON.
    pub fn negotiated(&self) -> String {
        let muxer = if self.has_fault("wrong-muxer") && !self.muxer.is_empty() { "other" } else { &self.muxer };
        let security = if self.has_fault("further-axis") { "noise" } else { &self.security };
        let axes = [("transport", self.transport.as_str()), ("muxer", muxer), ("security", security)];
        let fields = axes.iter().filter(|(_, value)| !value.is_empty());
        let fields: Vec<String> = fields.map(|(axis, value)| format!("\"{axis}\": \"{value}\"")).collect();
        format!("{{{}}}", fields.join(", "))
    }
}

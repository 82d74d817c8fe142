//! Device numbers and the names that traces give them.
//!
//! A record holds a plain number. FIU writes a device as `major,minor` (Linux numbers: 12 and 20
//! bits), MSR as host and disk, the other formats as the number itself.

use std::collections::HashMap;

use serde::Serialize;

use crate::error::Fault;

/// How the numbers of a trace are written as names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NameStyle {
    /// The number itself.
    Number,
    /// `major,minor`.
    MajorMinor,
    /// `host.disk`; the upper 16 bits count the hosts in order of first appearance.
    HostDisk,
}

impl NameStyle {
    /// The style's name in the metadata of a native trace.
    pub(crate) fn name(self) -> &'static str {
        match self {
            NameStyle::Number => "number",
            NameStyle::MajorMinor => "major_minor",
            NameStyle::HostDisk => "host_disk",
        }
    }

    /// The style of that name.
    pub(crate) fn from_name(name: &str) -> Option<NameStyle> {
        [
            NameStyle::Number,
            NameStyle::MajorMinor,
            NameStyle::HostDisk,
        ]
        .into_iter()
        .find(|style| style.name() == name)
    }
}

/// The names of a trace's devices.
#[derive(Debug, Clone)]
pub struct DeviceNames {
    style: NameStyle,
    hosts: Vec<String>,
    index: HashMap<Vec<u8>, u16>,
    last: Option<u16>,
}

impl DeviceNames {
    /// Names in this style, no host known yet.
    pub fn new(style: NameStyle) -> Self {
        DeviceNames {
            style,
            hosts: Vec::new(),
            index: HashMap::new(),
            last: None,
        }
    }

    /// How names are written.
    pub fn style(&self) -> NameStyle {
        self.style
    }

    /// The hosts in order of first appearance; empty unless the style is [`NameStyle::HostDisk`].
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// The name of a device number.
    pub fn name(&self, device: u32) -> String {
        match self.style {
            NameStyle::Number => device.to_string(),
            NameStyle::MajorMinor => {
                let (major, minor) = major_minor(device);
                format!("{major},{minor}")
            }
            NameStyle::HostDisk => match self.hosts.get((device >> 16) as usize) {
                Some(host) => format!("{host}.{}", device & 0xffff),
                None => device.to_string(),
            },
        }
    }

    /// The host and disk of a device number, when the trace names hosts.
    pub fn host_disk(&self, device: u32) -> Option<(&str, u32)> {
        let host = self.hosts.get((device >> 16) as usize)?;
        Some((host, device & 0xffff))
    }

    /// The device number of a host and disk; a new host is added.
    pub(crate) fn intern_host(&mut self, host: &[u8], disk: u16) -> Result<u32, Fault> {
        let known = self
            .last
            .filter(|&i| self.hosts[i as usize].as_bytes() == host);
        let index = match known.or_else(|| self.index.get(host).copied()) {
            Some(index) => index,
            None => self.add_host(host)?,
        };
        self.last = Some(index);
        Ok(u32::from(index) << 16 | u32::from(disk))
    }

    fn add_host(&mut self, host: &[u8]) -> Result<u16, Fault> {
        let text = std::str::from_utf8(host)
            .ok()
            .filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic()))
            .ok_or_else(|| Fault::bytes("host", host, "a name of printable ASCII characters"))?;
        let index = u16::try_from(self.hosts.len())
            .map_err(|_| Fault::bytes("host", host, "one of at most 65536 hosts"))?;
        self.hosts.push(text.to_owned());
        self.index.insert(host.to_vec(), index);
        Ok(index)
    }
}

/// The device number of a Linux major and minor number (below 2^12 and 2^20).
pub fn from_major_minor(major: u32, minor: u32) -> u32 {
    major << 20 | minor & 0xf_ffff
}

/// The Linux major and minor number of a device number.
pub fn major_minor(device: u32) -> (u32, u32) {
    (device >> 20, device & 0xf_ffff)
}

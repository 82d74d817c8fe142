//! Device numbers and the names that traces give them.
//!
//! A record holds a plain number. FIU writes a device as `major,minor` (Linux numbers: 12 and 20
//! bits), MSR as host and disk, fio as the name of a file, the other formats as the number itself.

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
    /// The name of a file; the number counts the files in order of first appearance.
    File,
}

impl NameStyle {
    /// The style's name in the metadata of a native trace.
    pub(crate) fn name(self) -> &'static str {
        match self {
            NameStyle::Number => "number",
            NameStyle::MajorMinor => "major_minor",
            NameStyle::HostDisk => "host_disk",
            NameStyle::File => "file",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<NameStyle> {
        [
            NameStyle::Number,
            NameStyle::MajorMinor,
            NameStyle::HostDisk,
            NameStyle::File,
        ]
        .into_iter()
        .find(|style| style.name() == name)
    }
}

/// The names of a trace's devices.
#[derive(Debug, Clone)]
pub struct DeviceNames {
    style: NameStyle,
    labels: Vec<String>,
    index: HashMap<Vec<u8>, u16>,
    last: Option<u16>,
}

impl DeviceNames {
    /// Names in this style, no host or file known yet.
    pub fn new(style: NameStyle) -> Self {
        DeviceNames {
            style,
            labels: Vec::new(),
            index: HashMap::new(),
            last: None,
        }
    }

    pub fn style(&self) -> NameStyle {
        self.style
    }

    /// The hosts or files in order of first appearance; empty unless the style is
    /// [`NameStyle::HostDisk`] or [`NameStyle::File`].
    pub fn labels(&self) -> &[String] {
        &self.labels
    }

    pub fn name(&self, device: u32) -> String {
        let name = match self.style {
            NameStyle::Number => None,
            NameStyle::MajorMinor => {
                let (major, minor) = major_minor(device);
                Some(format!("{major},{minor}"))
            }
            NameStyle::HostDisk => {
                let host_disk = self.host_disk(device);
                host_disk.map(|(host, disk)| format!("{host}.{disk}"))
            }
            NameStyle::File => self.labels.get(device as usize).cloned(),
        };
        name.unwrap_or_else(|| device.to_string())
    }

    /// The host and disk of a device number, when the trace names hosts.
    pub fn host_disk(&self, device: u32) -> Option<(&str, u32)> {
        if self.style != NameStyle::HostDisk {
            return None;
        }
        let host = self.labels.get((device >> 16) as usize)?;
        Some((host, device & 0xffff))
    }

    /// The device number of a host and disk; a new host is added.
    #[inline]
    pub(crate) fn intern_host(&mut self, host: &[u8], disk: u16) -> Result<u32, Fault> {
        let index = self.intern_label("host", host)?;
        Ok(u32::from(index) << 16 | u32::from(disk))
    }

    /// The device number of a file; a new one is added.
    #[inline]
    pub(crate) fn intern_file(&mut self, file: &[u8]) -> Result<u32, Fault> {
        self.intern_label("file", file).map(u32::from)
    }

    /// The place of a host or file among the labels; `what` it is stands in errors.
    #[inline]
    pub(crate) fn intern_label(&mut self, what: &'static str, label: &[u8]) -> Result<u16, Fault> {
        let known = self
            .last
            .filter(|&i| self.labels[i as usize].as_bytes() == label);
        let index = match known.or_else(|| self.index.get(label).copied()) {
            Some(index) => index,
            None => self.add_label(what, label)?,
        };
        self.last = Some(index);
        Ok(index)
    }

    fn add_label(&mut self, what: &'static str, label: &[u8]) -> Result<u16, Fault> {
        let text = std::str::from_utf8(label)
            .ok()
            .filter(|text| !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic()))
            .ok_or_else(|| Fault::bytes(what, label, "a name of printable ASCII characters"))?;
        let index = u16::try_from(self.labels.len())
            .map_err(|_| Fault::bytes(what, label, "one of at most 65536 names"))?;
        self.labels.push(text.to_owned());
        self.index.insert(label.to_vec(), index);
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

//! The devices a workload keeps, numbered by slots in order of first appearance.

use std::collections::HashMap;

use crate::devices::DeviceNames;
use crate::error::{Error, Result};

/// Which devices are kept, and which were seen.
#[derive(Debug)]
pub(crate) struct Selection {
    wanted: Vec<String>,
    slots: HashMap<u32, Option<u32>>,
    last: Option<(u32, Option<u32>)>,
    kept: Vec<(u32, String)>,
    left_out: Vec<String>,
}

impl Selection {
    /// Keeps the devices of these names, or all when there is none.
    pub(crate) fn new(wanted: &[String]) -> Self {
        Selection {
            wanted: wanted.to_vec(),
            slots: HashMap::new(),
            last: None,
            kept: Vec::new(),
            left_out: Vec::new(),
        }
    }

    /// The slot of a device; `None` when it is not kept.
    #[inline]
    pub(crate) fn slot(&mut self, device: u32, names: &DeviceNames) -> Option<u32> {
        if let Some((last, slot)) = self.last
            && last == device
        {
            return slot;
        }
        let slot = match self.slots.get(&device) {
            Some(&slot) => slot,
            None => self.add(device, names),
        };
        self.last = Some((device, slot));
        slot
    }

    fn add(&mut self, device: u32, names: &DeviceNames) -> Option<u32> {
        let name = names.name(device);
        let slot = if self.wanted.is_empty() || self.wanted.contains(&name) {
            self.kept.push((device, name));
            Some(self.kept.len() as u32 - 1)
        } else {
            self.left_out.push(name);
            None
        };
        self.slots.insert(device, slot);
        slot
    }

    /// Number and name of each kept device, by slot.
    ///
    /// # Errors
    /// When a device was asked for that the traces do not have.
    pub(crate) fn kept(&self) -> Result<&[(u32, String)]> {
        for name in &self.wanted {
            if !self.kept.iter().any(|(_, kept)| kept == name) {
                let mut seen: Vec<&str> = self.kept.iter().map(|(_, name)| name.as_str()).collect();
                seen.extend(self.left_out.iter().map(String::as_str));
                seen.truncate(20);
                return Err(Error::Layout(format!(
                    "device '{name}' does not occur, expected one of {}",
                    seen.join(" ")
                )));
            }
        }
        Ok(&self.kept)
    }
}

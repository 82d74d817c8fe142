//! Builders of requests for tests.

use super::{Access, AccessOp};

/// Bytes of a page.
pub(super) const PAGE: u64 = 4096;

/// A request of whole pages.
fn request(time_ns: u64, op: AccessOp, device: u32, unit: u64, units: u32) -> Access {
    Access {
        time_ns,
        op,
        device,
        offset: unit * PAGE,
        length: u64::from(units) * PAGE,
        unit,
        units,
        values: None,
    }
}

/// A write on device 0 at time 0 with a value for each page.
pub(super) fn write(unit: u64, values: &[u32]) -> Access {
    Access {
        values: Some(values.to_vec()),
        ..request(0, AccessOp::Write, 0, unit, values.len() as u32)
    }
}

/// A write on device 0 at time 0 without values.
pub(super) fn blind_write(unit: u64, units: u32) -> Access {
    request(0, AccessOp::Write, 0, unit, units)
}

/// A read on device 0 at time 0 that returns a value for each page.
pub(super) fn read(unit: u64, values: &[u32]) -> Access {
    Access {
        values: Some(values.to_vec()),
        ..request(0, AccessOp::Read, 0, unit, values.len() as u32)
    }
}

/// A read on device 0 at time 0 without values.
pub(super) fn blind_read(unit: u64, units: u32) -> Access {
    request(0, AccessOp::Read, 0, unit, units)
}

/// A trim on device 0 at time 0.
pub(super) fn trim(unit: u64, units: u32) -> Access {
    request(0, AccessOp::Trim, 0, unit, units)
}

/// A flush on device 0 at time 0.
pub(super) fn flush() -> Access {
    request(0, AccessOp::Flush, 0, 0, 0)
}

/// The same request on another device.
pub(super) fn on(device: u32, access: Access) -> Access {
    Access { device, ..access }
}

/// The same request at another time.
pub(super) fn at(time_ns: u64, access: Access) -> Access {
    Access { time_ns, ..access }
}

/// A request of bytes that need not fill its one page.
pub(super) fn bytes(op: AccessOp, device: u32, offset: u64, length: u64) -> Access {
    Access {
        offset,
        length,
        ..request(0, op, device, offset / PAGE, 1)
    }
}

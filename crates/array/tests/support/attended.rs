//! An element that is attended to as a server or a simulation does: work follows its requests, all that is due, some
//! steps of it, or none; and perhaps work ahead of them.

use std::ops::{Deref, DerefMut};

use flashlore_array::element::Statistics;
use flashlore_array::icash::ICash;
use flashlore_array::icash::ahead::Reach;
use flashlore_array::{ArrayError, Element};
use flashlore_delta::Page;

/// How many steps of work follow a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    All,
    /// So many: a scan or a cleaning has requests between its steps, and what is put off, requests have to do.
    AtMost(u32),
}

/// How an element is attended to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attendance {
    pub steps: Steps,
    /// Whether what holds nothing is given back now and then, and blocks go home before they have to.
    pub is_ahead: bool,
}

pub struct Attended {
    element: ICash,
    attendance: Attendance,
    requests: u64,
}

impl Attended {
    pub fn new(mut element: ICash, attendance: Attendance) -> Attended {
        if attendance.steps != Steps::All {
            element.leave_work();
        }
        Attended {
            element,
            attendance,
            requests: 0,
        }
    }

    pub fn into_element(self) -> ICash {
        self.element
    }

    pub fn close(self) -> Result<(), ArrayError> {
        self.element.close()
    }

    fn attend<T>(&mut self, done: T) -> T {
        match self.attendance.steps {
            Steps::All => self.element.work_off(),
            Steps::AtMost(steps) => {
                for _ in 0..steps {
                    // What fails is counted, and due again.
                    let _ = self.element.work();
                }
            }
        }
        self.requests += 1;
        if self.attendance.is_ahead && self.requests.is_multiple_of(5) {
            // What fails is counted.
            while matches!(self.element.give_back(), Ok(true)) {}
        }
        if self.attendance.is_ahead && self.requests.is_multiple_of(13) {
            let reach = match self.requests.is_multiple_of(2) {
                true => Reach::All,
                false => Reach::Oldest,
            };
            let _ = self.element.write_back_ahead(reach, 3);
        }
        done
    }
}

impl Attendance {
    /// All that is due, and nothing ahead.
    pub const PLAIN: Attendance = Attendance {
        steps: Steps::All,
        is_ahead: false,
    };
}

impl Deref for Attended {
    type Target = ICash;

    fn deref(&self) -> &ICash {
        &self.element
    }
}

impl DerefMut for Attended {
    fn deref_mut(&mut self) -> &mut ICash {
        &mut self.element
    }
}

impl Element for Attended {
    fn read(&mut self, lba: u64, page: &mut Page) -> Result<(), ArrayError> {
        let done = self.element.read(lba, page);
        self.attend(done)
    }

    fn write(&mut self, lba: u64, page: &Page) -> Result<(), ArrayError> {
        let done = self.element.write(lba, page);
        self.attend(done)
    }

    fn trim(&mut self, lba: u64) -> Result<(), ArrayError> {
        let done = self.element.trim(lba);
        self.attend(done)
    }

    fn continue_request(&mut self) {
        self.element.continue_request();
    }

    fn work(&mut self) -> Result<bool, ArrayError> {
        self.element.work()
    }

    fn flush(&mut self) -> Result<(), ArrayError> {
        self.element.flush()
    }

    fn lay_in(&mut self, pages: &mut dyn Iterator<Item = (u64, Page)>) -> Result<(), ArrayError> {
        self.element.lay_in(pages)
    }

    fn statistics(&self) -> Statistics {
        self.element.statistics()
    }
}

//! An element that is attended to as a server or a simulation does: work follows its requests, all that is due, some
//! steps of it, or none.

use std::ops::{Deref, DerefMut};

use flashlore_array::element::Statistics;
use flashlore_array::icash::ICash;
use flashlore_array::{ArrayError, Element};
use flashlore_delta::Page;

/// How many steps of work follow a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attendance {
    All,
    /// So many: a scan or a cleaning has requests between its steps, and what is put off, requests have to do.
    AtMost(u32),
}

pub struct Attended {
    element: ICash,
    attendance: Attendance,
}

impl Attended {
    pub fn new(element: ICash, attendance: Attendance) -> Attended {
        Attended {
            element,
            attendance,
        }
    }

    pub fn into_element(self) -> ICash {
        self.element
    }

    pub fn close(self) -> Result<(), ArrayError> {
        self.element.close()
    }

    fn attend<T>(&mut self, done: T) -> T {
        match self.attendance {
            Attendance::All => self.element.work_off(),
            Attendance::AtMost(steps) => {
                for _ in 0..steps {
                    // What fails is counted, and due again.
                    let _ = self.element.work();
                }
            }
        }
        done
    }
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

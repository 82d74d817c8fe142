//! Sessions: which states of the two media belong together.
//!
//! A number counts how often the array was opened and closed. Both media have it, so that a medium that was replaced
//! by an older copy of itself is found before anything is written. They cannot be written at once; so each step from
//! one number to the next is announced on the fast medium, done with the root on the slow one, and confirmed on the
//! fast one, each durable before the next begins. Nothing else changes during a step.
//!
//! Invariant: what a power cut leaves has on the slow medium one of the two numbers on the fast one. They differ only
//! if the power was cut within a step.

use crate::element::Device;
use crate::error::ArrayError;
use crate::icash::format::Superblock;
use crate::icash::format::superblock::Session;
use crate::icash::parameters::BLOCK_BYTES;
use crate::icash::state::ICash;

impl Session {
    /// Refuses a slow medium that is not of this session.
    pub(super) fn demand(&self, slow: u32) -> Result<(), ArrayError> {
        match slow == self.confirmed || slow == self.announced {
            true => Ok(()),
            false => Err(ArrayError::Stale {
                fast: self.confirmed,
                slow,
            }),
        }
    }
}

impl ICash {
    /// Goes on to the next session number on both media. What is remembered of the log becomes a checkpoint.
    pub(super) fn next_session(&mut self) -> Result<(), ArrayError> {
        let next = self.session.confirmed.checked_add(1).ok_or_else(|| {
            let often = "the array was opened and closed more often than sessions can be numbered";
            ArrayError::Damaged(often.into())
        })?;
        self.write_session(Session {
            announced: next,
            ..self.session
        })?;
        self.write_checkpoint()?;
        let was_fresh = std::mem::take(&mut self.is_fresh);
        self.write_session(Session::at(next))?;
        match was_fresh {
            // No copy may say any more that the slots hold nothing.
            true => self.write_superblock(1 - self.session.copy(), self.session),
            false => Ok(()),
        }
    }

    /// Ends a step that was interrupted after the root was written.
    pub(super) fn confirm_session(&mut self, slow: u32) -> Result<(), ArrayError> {
        match slow == self.session.confirmed {
            true => Ok(()),
            false => self.write_session(Session::at(slow)),
        }
    }

    /// Writes what is known of sessions to the fast medium, over the older of the two copies of its superblock.
    fn write_session(&mut self, session: Session) -> Result<(), ArrayError> {
        self.write_superblock(session.copy(), session)?;
        self.session = session;
        Ok(())
    }

    fn write_superblock(&mut self, copy: u64, session: Session) -> Result<(), ArrayError> {
        let superblock = Superblock {
            id: self.id,
            is_fast: true,
            is_fresh: self.is_fresh,
            session,
            shape: self.shape.clone(),
        };
        let offset = copy * BLOCK_BYTES as u64;
        self.media
            .write(Device::Fast, offset, &superblock.encode(copy))?;
        self.sync(Device::Fast)
    }
}

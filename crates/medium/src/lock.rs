//! The advisory lock (`flock`) that keeps a second opener out; those who only look share it.
//!
//! The lock belongs to the open file, and a process that is being started has all files of the one that starts it
//! until it runs its own program. So a lock may outlive its holder by the moment between `fork` and `exec` of a child
//! that never asked for it. Two rules follow:
//!
//! - Whoever is done with a file gives the lock up and does not leave that to the closing of it.
//! - Whoever opens a file that is in use tries again for about a second before it says so: a holder that was killed
//!   gave nothing up.

use std::fs::{File, TryLockError};
use std::ops::Deref;
use std::process;
use std::time::Duration;

use crate::error::Cause;
use crate::file::Access;

/// Attempts that are followed by a pause. With twice the pause each time they take 1023 ms together.
const PAUSES: u32 = 10;

/// Attempts until what is wanted is not in use, or about a second is over. Between them it calls `pause`.
pub(crate) fn patiently<T>(
    mut pause: impl FnMut(Duration),
    mut attempt: impl FnMut() -> Result<T, Cause>,
) -> Result<T, Cause> {
    for doubled in 0..PAUSES {
        match attempt() {
            Err(Cause::InUse) => pause(Duration::from_millis(1 << doubled)),
            done => return done,
        }
    }
    attempt()
}

/// An open file and its lock, which is given up before the file is closed.
#[derive(Debug)]
pub(crate) struct Locked {
    file: File,
    /// Who took the lock. A fork of this process shares it and must not give it up.
    holder: u32,
}

impl Locked {
    /// Locks a file, for oneself if it is to be changed.
    pub(crate) fn new(file: File, access: Access) -> Result<Self, Cause> {
        let locked = match access {
            Access::Change => file.try_lock(),
            Access::Look => file.try_lock_shared(),
        };
        locked.map_err(|error| match error {
            TryLockError::WouldBlock => Cause::InUse,
            TryLockError::Error(error) => Cause::Io(error),
        })?;
        Ok(Locked {
            file,
            holder: process::id(),
        })
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        if process::id() == self.holder {
            // Closing does it too, unless a child has the file.
            let _ = self.file.unlock();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, PipeWriter, Read, Write};
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::thread::{self, JoinHandle};

    use parking_lot::Mutex;

    use super::*;
    use crate::{FileMedium, Mode};

    /// One at a time: the child of another test would have the files of this one.
    static STARTING: Mutex<()> = Mutex::new(());

    /// A child between `fork` and `exec`, which has every file of this process.
    struct Starting {
        release: PipeWriter,
        spawned: Option<JoinHandle<io::Result<process::ExitStatus>>>,
    }

    impl Starting {
        fn new() -> Self {
            let (mut hold, release) = io::pipe().unwrap();
            let (mut here, mut there) = io::pipe().unwrap();
            let mut command = Command::new("true");
            // SAFETY: it reads and writes pipes, which is allowed between `fork` and `exec`.
            unsafe {
                command.pre_exec(move || {
                    there.write_all(b"!")?;
                    hold.read_exact(&mut [0])
                });
            }
            let spawned = Some(thread::spawn(move || command.status()));
            here.read_exact(&mut [0]).unwrap();
            Starting { release, spawned }
        }

        /// Lets the child run its program and waits for its end.
        fn finish(mut self) {
            let spawned = self.spawned.take().unwrap();
            drop(self);
            assert!(spawned.join().unwrap().unwrap().success());
        }
    }

    impl Drop for Starting {
        fn drop(&mut self) {
            self.release.write_all(b"!").unwrap();
        }
    }

    fn never(_: Duration) {
        panic!("there is no reason to wait");
    }

    #[test]
    fn a_lock_that_was_given_up_is_not_held_by_a_child_that_starts() {
        let _alone = STARTING.lock();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("medium");
        let medium = FileMedium::create(&path, 4096, Mode::Buffered).unwrap();
        let child = Starting::new();
        drop(medium);
        let again = || Locked::new(File::open(&path).map_err(Cause::Io)?, Access::Change);
        patiently(never, again).unwrap();
        child.finish();
    }

    #[test]
    fn a_lock_left_to_a_child_that_starts_is_waited_for() {
        let _alone = STARTING.lock();
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || Locked::new(File::open(file.path()).map_err(Cause::Io)?, Access::Change);
        // Whoever is killed closes its files and gives nothing up.
        let killed = File::open(file.path()).unwrap();
        killed.try_lock().unwrap();
        let mut child = Some(Starting::new());
        drop(killed);
        let mut pauses = 0;
        let pause = |_| {
            pauses += 1;
            if pauses == 3 {
                child.take().unwrap().finish();
            }
        };
        patiently(pause, open).unwrap();
        assert_eq!(pauses, 3);
    }

    #[test]
    fn a_file_that_stays_in_use_is_waited_for_about_a_second() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let open = || Locked::new(File::open(file.path()).map_err(Cause::Io)?, Access::Change);
        let _locked = open().unwrap();
        let mut waited = Duration::ZERO;
        let refused = patiently(|pause| waited += pause, open);
        assert!(matches!(refused, Err(Cause::InUse)));
        assert_eq!(waited, Duration::from_millis(1023));
    }

    #[test]
    fn other_errors_are_not_waited_for() {
        let refused = patiently(never, || Err::<(), _>(Cause::NotAMedium));
        assert!(matches!(refused, Err(Cause::NotAMedium)));
    }
}

//! A volume that is open until a signal: what `serve` and `mount` share.

use std::path::PathBuf;
use std::sync::Arc;

use flashlore_paged::Pager;
use flashlore_serve::control::Control;
use flashlore_serve::{ServeError, Service};
use flashlore_sim::config::Size;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use super::memory::bound;
use super::{clock, home, mode};
use crate::cli::VolumeArgs;
use crate::error::CliError;
use crate::output::tell;

/// A volume that is open, and the signals that end it.
pub struct Running {
    directory: PathBuf,
    signals: Signals,
    service: Arc<Service>,
    /// Bounds the memory of the process, if that was asked for.
    _pager: Option<Pager>,
}

impl Running {
    /// Opens a volume, which takes no more memory than `memory` if that is given. From here on SIGTERM and SIGINT wait to be asked for.
    pub fn open(args: &VolumeArgs, memory: Option<Size>) -> Result<Self, CliError> {
        let directory = args.directory.clone();
        let failed = |source| CliError::serve(&args.directory, source);
        let signals = Signals::new([SIGTERM, SIGINT]).map_err(|source| CliError::File {
            action: "handle signals for",
            path: directory.clone(),
            source,
        })?;
        let home = home(args);
        let (pager, opened) = match memory {
            None => (None, home.open(mode(args))),
            Some(limit) => {
                let pager = bound(&home, args, limit)?;
                (pager, home.open_bounded(mode(args)))
            }
        };
        let (volume, recovery) = opened.map_err(failed)?;
        if recovery.events > 0 {
            tell(&format!(
                "recovered {} events from {} units in {} blocks",
                recovery.events, recovery.units, recovery.blocks
            ));
        }
        let service = Service::new(home, volume, clock()).map_err(failed)?;
        Ok(Running {
            directory,
            signals,
            service: Arc::new(service),
            _pager: pager,
        })
    }

    /// The open volume.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// What lets another thread end the wait for a signal.
    pub fn handle(&self) -> Handle {
        self.signals.handle()
    }

    /// Takes requests at the control socket, until the answer is dropped.
    pub fn control(&self) -> Result<Control, CliError> {
        let started = Control::start(Arc::clone(&self.service));
        started.map_err(|source| self.failed(source))
    }

    /// Waits for a signal; whether one came, rather than an end of the wait.
    pub fn signalled(&mut self) -> bool {
        self.signals.forever().next().is_some()
    }

    /// Closes the volume with a checkpoint. `left` tells of clients that were cut off, if there are any.
    pub fn close(self, left: Option<&str>) -> Result<(), CliError> {
        let closed = self.service.close();
        closed.map_err(|error| self.failed(error.into()))?;
        match left {
            None => Ok(()),
            Some(left) => Err(CliError::Differs(format!(
                "{}: {left} cut off; everything acknowledged is safe",
                self.directory.display()
            ))),
        }
    }

    fn failed(&self, source: ServeError) -> CliError {
        CliError::serve(&self.directory, source)
    }
}

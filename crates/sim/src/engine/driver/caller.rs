//! A caller as the sender of requests: it asks when something happens next, and lets time pass.

use std::ops::DerefMut;

use flashlore_flash::Time;

use super::{DriveError, Driver, LATEST, Response, Result};
use crate::engine::system::System;

impl<S: System, D: DerefMut<Target = S>> Driver<D> {
    /// The next instant at which a response may be given; nothing if no request is in flight and the caller has
    /// heard of all responses. A response that is given by itself is not given before it.
    pub fn next_event(&self) -> Option<Time> {
        let response = self.sender.next_response();
        let event = if self.requests.is_empty() {
            None
        } else {
            self.next_event_of_anything().map(|at| at.max(self.now))
        };
        response.into_iter().chain(event).min()
    }

    /// Lets time pass to `until`, or not at all if that has passed, and appends the responses given by then, in
    /// order of time and name.
    ///
    /// # Errors
    /// A device that cannot serve what is in flight, or an instant that is too late.
    pub fn advance(&mut self, until: Time, heard: &mut Vec<Response>) -> Result<()> {
        let until = until.max(self.now);
        if until > LATEST {
            let seconds = until / 1_000_000_000;
            return Err(DriveError::TooLate { seconds });
        }
        self.pass(until)?;
        self.sender.hear(until, heard);
        Ok(())
    }

    /// As [`Driver::drain`]; the caller hears of every response.
    ///
    /// # Errors
    /// A device that cannot serve what is in flight.
    pub fn drain_and_hear(&mut self, heard: &mut Vec<Response>) -> Result<()> {
        self.drain()?;
        self.sender.hear(Time::MAX, heard);
        Ok(())
    }
}

//! The states a volume may come back with after a crash.
//!
//! A state is the value of each address. Invariant: `states[sure..]` are exactly the states allowed,
//! oldest first; those before are kept to say what went wrong.

use crate::crash::pages::{NO_VALUE, Value};

/// The states since the volume was opened.
#[derive(Debug, Clone)]
pub struct Oracle {
    states: Vec<Vec<Value>>,
    sure: usize,
}

impl Oracle {
    /// A volume of which this state is durable.
    pub fn new(state: Vec<Value>) -> Self {
        Oracle {
            states: vec![state],
            sure: 0,
        }
    }

    /// The state after all operations.
    pub fn newest(&self) -> &[Value] {
        self.states.last().expect("there is always a state")
    }

    /// An operation that sets an address began.
    pub fn set(&mut self, lpn: u32, value: Value) {
        let mut state = self.newest().to_vec();
        state[lpn as usize] = value;
        self.states.push(state);
    }

    /// The operation that began last changed nothing, it says.
    pub fn withdraw(&mut self) {
        self.states.pop();
    }

    /// Everything so far was acknowledged as durable.
    pub fn acknowledge(&mut self) {
        self.sure = self.states.len() - 1;
    }

    /// The states that are allowed, oldest first.
    pub fn allowed(&self) -> &[Vec<Value>] {
        &self.states[self.sure..]
    }

    /// Changes that are acknowledged as durable, and changes that began.
    pub fn window(&self) -> (usize, usize) {
        (self.sure, self.states.len() - 1)
    }

    /// Takes what an opened volume holds: from now on this is the only state allowed.
    ///
    /// # Errors
    /// It is not an allowed state; a text that says how it differs.
    pub fn accept(&mut self, found: Vec<Value>) -> Result<(), String> {
        if !self.allowed().contains(&found) {
            return Err(self.explain(&found));
        }
        *self = Oracle::new(found);
        Ok(())
    }

    fn explain(&self, found: &[Value]) -> String {
        let events = self.states.len() - 1;
        let range = format!(
            "allowed are the states after {} to {events} of {events} changes",
            self.sure
        );
        if let Some(old) = self.states.iter().position(|state| state == found) {
            return format!("the volume went back to its state after change {old}; {range}");
        }
        let differences = |state: &[Value]| -> Vec<usize> {
            (0..found.len())
                .filter(|&lpn| state[lpn] != found[lpn])
                .collect()
        };
        let nearest = (self.sure..self.states.len())
            .min_by_key(|&index| differences(&self.states[index]).len())
            .expect("there is always a state");
        let mut text =
            format!("the volume holds no state it ever had; {range}, the nearest is {nearest}:");
        for lpn in differences(&self.states[nearest]) {
            let value = match found[lpn] {
                NO_VALUE => "bytes nobody wrote".to_owned(),
                value => format!("value {value}"),
            };
            let expected = self.states[nearest][lpn];
            text += &format!("\n  page {lpn} holds {value}, expected value {expected};");
            text += " it held, by change:";
            let mut last = None;
            for (index, state) in self.states.iter().enumerate() {
                if last.replace(state[lpn]) != Some(state[lpn]) {
                    text += &format!(" {index}: {}", state[lpn]);
                }
            }
        }
        text
    }
}

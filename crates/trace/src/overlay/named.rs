//! Overlays made elsewhere: known here by a name and parameters, which are what is written into
//! results, and by a function that makes one for each pass.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::model::Overlay;
use crate::error::{Error, Result};

/// Makes an overlay in its first state. All that one function makes give the same values for the
/// same page writes.
pub type MakeOverlay = Arc<dyn Fn() -> Box<dyn Overlay> + Send + Sync>;

/// An overlay by name.
///
/// Two are equal when name and parameters are. One that was read from results cannot make overlays
/// before [`NamedOverlay::attach`].
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedOverlay {
    name: String,
    parameters: BTreeMap<String, String>,
    #[serde(skip)]
    make: Option<MakeOverlay>,
}

impl NamedOverlay {
    /// An overlay; the name and the parameters must tell all that its values depend on.
    pub fn new(
        name: impl Into<String>,
        parameters: BTreeMap<String, String>,
        make: MakeOverlay,
    ) -> Self {
        NamedOverlay {
            name: name.into(),
            parameters,
            make: Some(make),
        }
    }

    /// Its name, as in `profile:mail`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// Gives an overlay that was read from results what makes it.
    pub fn attach(&mut self, make: MakeOverlay) {
        self.make = Some(make);
    }

    pub(super) fn begin(&self) -> Result<Box<dyn Overlay>> {
        let make = self.make.as_ref().ok_or_else(|| {
            Error::Layout(format!("the content model '{self}' is known by name only"))
        })?;
        Ok(make())
    }
}

impl PartialEq for NamedOverlay {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.parameters) == (&other.name, &other.parameters)
    }
}

impl fmt::Display for NamedOverlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (key, value) in &self.parameters {
            write!(f, ",{key}={value}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for NamedOverlay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NamedOverlay({self})")
    }
}

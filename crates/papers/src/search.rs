//! Searches: the value of a setting at which a measure reaches a target. Nothing is frozen by it; the
//! value found is a figure like others, of the run that the search is named after.

use serde::Deserialize;

/// The most runs of a search.
const MOST_STEPS: usize = 20;

/// What a search's figures add to those of its last run: the setting's value.
pub const SETTING: &str = "setting";

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// Name of the run with the value that was found.
    pub name: String,
    /// The run that is repeated with other values.
    pub run: String,
    /// The setting, as `--set` names it.
    pub setting: String,
    /// What stands behind the value.
    #[serde(default)]
    pub unit: String,
    /// The smallest value, above 0.
    pub from: f64,
    /// The largest. Only whole values are tried.
    pub to: f64,
    /// An expression that grows with the setting, of runs of this workload and of this search.
    pub measure: String,
    pub target: f64,
    pub tolerance: f64,
}

impl Search {
    pub fn text(&self, value: f64) -> String {
        format!("{}={value:.0}{}", self.setting, self.unit)
    }

    /// The workload and the system of its run.
    pub fn place(&self) -> (&str, &str) {
        self.run.rsplit_once('/').unwrap_or((&self.run, ""))
    }
}

/// Halves the ratio of the ends until the target is met; `None` when it is not between them. `measure` is
/// last asked for the value that is answered.
pub fn crossing<E>(
    search: &Search,
    mut measure: impl FnMut(f64) -> Result<f64, E>,
) -> Result<Option<f64>, E> {
    let target = search.target;
    let mut low = (search.from, measure(search.from)?);
    let mut high = (search.to, measure(search.to)?);
    if !(low.1 <= target && target <= high.1) {
        return Ok(None);
    }
    for _ in 0..MOST_STEPS {
        let at = (low.0 * high.0).sqrt();
        let here = (at.round(), measure(at.round())?);
        let done = (here.1 - target).abs() <= search.tolerance || high.0 - low.0 <= 1.0;
        if done {
            return Ok(Some(here.0));
        }
        match here.1 < target {
            true => low = here,
            false => high = here,
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(target: f64) -> Search {
        Search {
            name: "found".to_owned(),
            run: "web/a/bvssd".to_owned(),
            setting: "history.field_time".to_owned(),
            unit: "ns".to_owned(),
            from: 1.0,
            to: 100_000.0,
            measure: "1".to_owned(),
            target,
            tolerance: 0.01,
        }
    }

    #[test]
    fn a_bent_rising_curve_meets_the_target_at_the_value_measured_last() {
        let mut last = 0.0;
        let curve = |x: f64| {
            last = x;
            Ok::<_, ()>((x / 1000.0).powi(2) / 100.0)
        };
        let found = crossing(&search(3.0), curve).unwrap().unwrap();
        assert!(((found / 1000.0).powi(2) / 100.0 - 3.0).abs() <= 0.01);
        assert_eq!(found, last);
    }

    #[test]
    fn what_the_ends_do_not_enclose_is_not_found() {
        let curve = |x: f64| Ok::<_, ()>(x / 100_000.0);
        assert_eq!(crossing(&search(3.0), curve).unwrap(), None);
        let nothing = |_| Ok::<_, ()>(f64::NAN);
        assert_eq!(crossing(&search(3.0), nothing).unwrap(), None);
    }

    #[test]
    fn a_setting_is_written_as_set_wants_it() {
        let search = search(3.0);
        assert_eq!(search.text(1234.0), "history.field_time=1234ns");
        assert_eq!(search.place(), ("web/a", "bvssd"));
    }
}

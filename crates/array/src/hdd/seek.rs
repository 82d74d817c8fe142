//! How long the arm takes: seek time by distance in cylinders.
//!
//! * **Fitted** from three figures of a data sheet: `a + b sqrt(d)` up to a knee, linear beyond it, with
//!   one value and one slope at the knee. Of such curves exactly one has the given times for one cylinder,
//!   for the full stroke, and on average.
//! * **Measured**: straight lines between points.
//!
//! Invariants: a seek over no distance takes no time; a fitted curve never decreases.

use super::Time;

/// The three figures of a data sheet, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeekTimes {
    /// From a cylinder to the next.
    pub track_to_track: Time,
    /// Mean over all pairs of different cylinders.
    pub average: Time,
    /// From the first cylinder to the last.
    pub full_stroke: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SeekError {
    #[error(
        "seek: the average is {average} ns, expected {least} to {most} ns between a track-to-track time \
         of {track_to_track} ns and a full stroke of {full_stroke} ns over {cylinders} cylinders"
    )]
    Average {
        average: Time,
        /// The mean of a straight line.
        least: Time,
        /// The mean of a square root without a linear part.
        most: Time,
        track_to_track: Time,
        full_stroke: Time,
        cylinders: u32,
    },
    #[error(
        "seek: point {index} of the measured curve is ({distance} cylinders, {time} ns), expected \
         distances that increase from 1"
    )]
    Points {
        /// Which point, from 0.
        index: usize,
        distance: u32,
        time: Time,
    },
    #[error("seek: the measured curve has no point, expected at least one")]
    NoPoints,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SeekCurve {
    /// Fitted from [`SeekTimes`]; all coefficients in nanoseconds.
    Fitted {
        /// `a` of the square root.
        near: f64,
        /// `b` of the square root.
        root: f64,
        /// The last distance of the square root, in cylinders.
        knee: f64,
        /// Time at the knee.
        far: f64,
        /// Time of each further cylinder.
        slope: f64,
    },
    /// Points (distance, nanoseconds) in order of distance, the first at distance 1.
    Measured(Vec<(u32, Time)>),
}

impl SeekCurve {
    /// The curve with these times on a disk of so many cylinders.
    ///
    /// # Errors
    /// When no curve of this shape has them.
    pub fn fit(times: SeekTimes, cylinders: u32) -> Result<Self, SeekError> {
        let longest = f64::from(cylinders.max(2) - 1);
        let (mut low, mut high) = (1.0, longest);
        let mean = |knee| Self::through_ends(times, longest, knee).average(cylinders);
        let average = times.average as f64;
        let (least, most) = (mean(low), mean(high));
        // Half a nanosecond of room: a straight line, and a disk of two cylinders, are right as well.
        if !(least - 0.5..=most + 0.5).contains(&average) {
            return Err(SeekError::Average {
                average: times.average,
                least: least.ceil() as Time,
                most: most.floor() as Time,
                track_to_track: times.track_to_track,
                full_stroke: times.full_stroke,
                cylinders,
            });
        }
        // The mean grows with the knee: the curve becomes rounder.
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            match mean(middle) < average {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(Self::through_ends(times, longest, f64::midpoint(low, high)))
    }

    /// The curve with this knee and the right times for one cylinder and the full stroke.
    fn through_ends(times: SeekTimes, longest: f64, knee: f64) -> Self {
        let (first, last) = (times.track_to_track as f64, times.full_stroke as f64);
        // In units of `root`: what the time grows by from distance 1 to the longest.
        let growth = knee.sqrt() - 1.0 + (longest - knee) / (2.0 * knee.sqrt());
        let root = match growth > 0.0 {
            true => (last - first) / growth,
            false => 0.0,
        };
        SeekCurve::Fitted {
            near: first - root,
            root,
            knee,
            far: first - root + root * knee.sqrt(),
            slope: root / (2.0 * knee.sqrt()),
        }
    }

    /// A curve through measured points (distance in cylinders, nanoseconds).
    ///
    /// # Errors
    /// When there is no point, the first is not at distance 1, or distances do not increase.
    pub fn measured(points: &[(u32, Time)]) -> Result<Self, SeekError> {
        let mut before = 0;
        for (index, &(distance, time)) in points.iter().enumerate() {
            if distance <= before || index == 0 && distance != 1 {
                return Err(SeekError::Points {
                    index,
                    distance,
                    time,
                });
            }
            before = distance;
        }
        match points.is_empty() {
            true => Err(SeekError::NoPoints),
            false => Ok(SeekCurve::Measured(points.to_vec())),
        }
    }

    /// Time of a seek over so many cylinders, in nanoseconds.
    #[inline]
    pub fn time(&self, distance: u32) -> Time {
        if distance == 0 {
            return 0;
        }
        self.exact(f64::from(distance)).round() as Time
    }

    fn exact(&self, distance: f64) -> f64 {
        match self {
            SeekCurve::Fitted {
                near, root, knee, ..
            } if distance <= *knee => near + root * distance.sqrt(),
            SeekCurve::Fitted {
                knee, far, slope, ..
            } => far + slope * (distance - knee),
            SeekCurve::Measured(points) => between(points, distance),
        }
    }

    /// Mean over all pairs of different cylinders, in nanoseconds.
    pub fn average(&self, cylinders: u32) -> f64 {
        // A longer stride than 1 only where the curve is smooth at its scale.
        let stride = (cylinders / 8192).max(1);
        let (mut sum, mut pairs) = (0.0, 0.0);
        let mut from = 1;
        while from < cylinders {
            let count = stride.min(cylinders - from);
            let middle = f64::from(from) + f64::from(count - 1) / 2.0;
            let weight = f64::from(count) * (f64::from(cylinders) - middle);
            sum += weight * self.exact(middle);
            pairs += weight;
            from += count;
        }
        match pairs > 0.0 {
            true => sum / pairs,
            false => self.exact(1.0),
        }
    }
}

/// On the straight line between the neighbours, and on that of the last two points beyond them.
fn between(points: &[(u32, Time)], distance: f64) -> f64 {
    let value = |index: usize| (f64::from(points[index].0), points[index].1 as f64);
    if points.len() == 1 {
        return value(0).1;
    }
    let after = points.partition_point(|&(at, _)| f64::from(at) < distance);
    let right = after.clamp(1, points.len() - 1);
    let ((x0, y0), (x1, y1)) = (value(right - 1), value(right));
    y0 + (y1 - y0) * (distance - x0) / (x1 - x0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: SeekTimes = SeekTimes {
        track_to_track: 230_000,
        average: 7_500_000,
        full_stroke: 17_060_000,
    };

    #[test]
    fn a_fitted_curve_has_the_three_times_it_was_fitted_to() {
        for cylinders in [100, 5_000, 165_800, 1_000_000] {
            let curve = SeekCurve::fit(TIMES, cylinders).expect("a curve");
            assert_eq!(curve.time(0), 0);
            assert_eq!(curve.time(1), TIMES.track_to_track);
            assert_eq!(curve.time(cylinders - 1), TIMES.full_stroke);
            let pairs = |distance: u32| f64::from(cylinders - distance);
            let (mut sum, mut weight) = (0.0, 0.0);
            for distance in 1..cylinders {
                sum += curve.time(distance) as f64 * pairs(distance);
                weight += pairs(distance);
            }
            let error = sum / weight / TIMES.average as f64 - 1.0;
            assert!(error.abs() < 1e-4, "{cylinders} cylinders: {error}");
        }
    }

    #[test]
    fn a_fitted_curve_is_a_square_root_that_goes_over_into_a_line() {
        let curve = SeekCurve::fit(TIMES, 10_000).expect("a curve");
        let SeekCurve::Fitted {
            near, root, knee, ..
        } = curve
        else {
            panic!("not fitted");
        };
        assert!(knee > 1.0 && knee < 9_999.0);
        for distance in 1..10_000u32 {
            let time = curve.time(distance) as f64;
            if f64::from(distance) <= knee {
                let expected = near + root * f64::from(distance).sqrt();
                assert!((time - expected).abs() <= 0.5);
            }
            let step = curve.time(distance + 1) as f64 - time;
            let slope_at_knee = root / (2.0 * knee.sqrt());
            assert!(step >= slope_at_knee - 1.0, "slower growth at {distance}");
            if f64::from(distance) > knee {
                assert!(step <= slope_at_knee + 1.0, "not a line at {distance}");
            }
        }
    }

    #[test]
    fn an_impossible_average_is_refused_with_the_possible_ones() {
        let average = 12_000_000;
        let error = SeekCurve::fit(SeekTimes { average, ..TIMES }, 10_000).expect_err("too high");
        let SeekError::Average { least, most, .. } = error else {
            panic!("{error}");
        };
        for average in [least, most] {
            assert!(SeekCurve::fit(SeekTimes { average, ..TIMES }, 10_000).is_ok());
        }
        for average in [least - 2, most + 2] {
            assert!(SeekCurve::fit(SeekTimes { average, ..TIMES }, 10_000).is_err());
        }
    }

    #[test]
    fn a_measured_curve_passes_its_points_and_goes_straight_between_them() {
        let curve = SeekCurve::measured(&[(1, 100), (3, 200), (10, 900)]).expect("a curve");
        let times: Vec<Time> = [1, 2, 3, 4, 10, 12].map(|d| curve.time(d)).to_vec();
        assert_eq!(times, [100, 150, 200, 300, 900, 1100]);
        assert!(SeekCurve::measured(&[]).is_err());
        assert!(SeekCurve::measured(&[(2, 1)]).is_err());
        assert!(SeekCurve::measured(&[(1, 1), (1, 2)]).is_err());
    }

    #[test]
    fn a_disk_of_one_or_two_cylinders_has_a_curve() {
        let flat = SeekTimes {
            track_to_track: 5,
            average: 5,
            full_stroke: 5,
        };
        for cylinders in [1, 2] {
            let curve = SeekCurve::fit(flat, cylinders).expect("a curve");
            assert_eq!(curve.time(1), 5);
        }
    }
}

//! Alternatives measured in turns, A B A B …, with the median of each.
//!
//! The machine's speed drifts by a factor of two within the hour. Short alternating rounds are affected alike, and a median ignores
//! a round in which another process took the cores.

/// The figures of one alternative, one per round.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds(Vec<f64>);

impl Rounds {
    pub(crate) fn add(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// Zero before the first round.
    pub(crate) fn median(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => 0.0,
            odd if odd % 2 == 1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        }
    }

    pub(crate) fn first(&self) -> f64 {
        self.0.first().copied().unwrap_or_default()
    }

    pub(crate) fn last(&self) -> f64 {
        self.0.last().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Rounds;

    #[test]
    fn one_slow_round_does_not_change_the_median() {
        let of = |figures: &[f64]| Rounds(figures.to_vec()).median();
        assert!((of(&[10.0, 11.0, 1.0]) - 10.0).abs() < f64::EPSILON);
        assert!((of(&[10.0, 1.0, 12.0, 11.0]) - 10.5).abs() < f64::EPSILON);
    }
}

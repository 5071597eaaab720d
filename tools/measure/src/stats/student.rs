//! Quantiles of Student's t distribution, for confidence intervals.

/// The quantiles of the first degrees of freedom, for which the series below is not precise enough.
const FIRST: [f64; 5] = [12.706_205, 4.302_653, 3.182_446, 2.776_445, 2.570_582];
/// The same quantile of the standard normal distribution.
const NORMAL: f64 = 1.959_964;

/// The quantile for a two-sided interval of 95 %, with an error below 0.001. Infinite without a degree of freedom.
///
/// From six degrees of freedom on it is the expansion around the normal distribution (Abramowitz and Stegun, 26.7.5).
pub(super) fn quantile(degrees: usize) -> f64 {
    let Some(index) = degrees.checked_sub(1) else { return f64::INFINITY };
    if let Some(known) = FIRST.get(index) {
        return *known;
    }
    let (degrees, x) = (degrees as f64, NORMAL);
    let terms = [
        (x.powi(3) + x) / 4.0,
        (5.0 * x.powi(5) + 16.0 * x.powi(3) + 3.0 * x) / 96.0,
        (3.0 * x.powi(7) + 19.0 * x.powi(5) + 17.0 * x.powi(3) - 15.0 * x) / 384.0,
        (79.0 * x.powi(9) + 776.0 * x.powi(7) + 1482.0 * x.powi(5) - 1920.0 * x.powi(3) - 945.0 * x) / 92_160.0,
    ];
    terms.iter().rev().fold(0.0, |sum, term| (sum + term) / degrees) + x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (degrees, expected) in
            [(1, 12.706), (4, 2.776), (6, 2.447), (7, 2.365), (9, 2.262), (19, 2.093), (30, 2.042), (49, 2.010)]
        {
            assert!((quantile(degrees) - expected).abs() < 0.000_6, "{degrees}: {}", quantile(degrees));
        }
        assert!((quantile(1_000_000) - NORMAL).abs() < 1e-5);
        assert_eq!(quantile(0), f64::INFINITY);
    }
}

//! Quantiles of Student's t distribution, for confidence intervals.

/// The steps of the search for a quantile; each halves its interval.
const STEPS: u32 = 200;
/// The most terms of the continued fraction.
const TERMS: u32 = 10_000;

/// The quantile for a two-sided interval beyond which the share `tail` lies: 0.05 for an interval of 95 %. Infinite without
/// a degree of freedom, or for a share that is not above 0.
pub(super) fn quantile(degrees: usize, tail: f64) -> f64 {
    if degrees == 0 || tail.is_nan() || tail <= 0.0 {
        return f64::INFINITY;
    }
    let degrees = degrees as f64;
    let (mut low, mut high) = (0.0, 1.0);
    while two_sided_tail(high, degrees) > tail {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if middle <= low || middle >= high {
            break;
        }
        if two_sided_tail(middle, degrees) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The share of the distribution beyond -t and t (Abramowitz and Stegun, 26.5.27 and 26.7.1).
fn two_sided_tail(t: f64, degrees: f64) -> f64 {
    incomplete_beta(degrees / (degrees + t * t), degrees / 2.0, 0.5)
}

/// The regularised incomplete beta function.
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let log_front = log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * x.ln() + b * (1.0 - x).ln();
    // The fraction converges quickly on this side only (26.5.8).
    if x < (a + 1.0) / (a + b + 2.0) {
        log_front.exp() * fraction(x, a, b) / a
    } else {
        1.0 - log_front.exp() * fraction(1.0 - x, b, a) / b
    }
}

/// The continued fraction of the incomplete beta function, by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let nonzero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for term in 1..=TERMS {
        let m = f64::from(term);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        for numerator in [even, odd] {
            d = 1.0 / nonzero(1.0 + numerator * d);
            c = nonzero(1.0 + numerator / c);
            value *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    value
}

/// The logarithm of the gamma function of numbers above 0 (6.1.41, from an argument at which its terms suffice).
fn log_gamma(x: f64) -> f64 {
    let (mut x, mut shift) = (x, 0.0);
    while x < 15.0 {
        shift += x.ln();
        x += 1.0;
    }
    let inverse = 1.0 / x;
    let terms = inverse / 12.0 - inverse.powi(3) / 360.0 + inverse.powi(5) / 1260.0 - inverse.powi(7) / 1680.0;
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + terms - shift
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_printed_tables() {
        for (degrees, tail, expected) in [
            (1, 0.05, 12.706_205),
            (4, 0.05, 2.776_445),
            (6, 0.05, 2.446_912),
            (9, 0.05, 2.262_157),
            (30, 0.05, 2.042_272),
            (49, 0.05, 2.009_575),
            (4, 0.01, 4.604_095),
            (9, 0.001, 4.780_913),
            (1, 0.001, 636.619_249),
            (20, 0.0001, 4.837_301),
        ] {
            let found = quantile(degrees, tail);
            assert!((found / expected - 1.0).abs() < 1e-5, "{degrees}, {tail}: {found}");
        }
        assert!((quantile(1_000_000, 0.05) - 1.959_966).abs() < 1e-5, "almost the normal distribution");
        assert_eq!(quantile(0, 0.05), f64::INFINITY);
        assert_eq!(quantile(3, 0.0), f64::INFINITY);
    }
}

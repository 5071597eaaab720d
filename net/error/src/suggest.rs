//! "Did you mean …?"

/// Longer words are not compared.
const LONGEST: usize = 40;

/// The candidate that is the most probable intended spelling of `word`, if any is near enough: at most a third of its
/// letters differ. Words of more than 40 octets are not compared.
#[must_use]
pub fn closest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > LONGEST {
        return None;
    }
    let most = (word.len() / 3).max(1);
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len() > LONGEST || candidate.len().abs_diff(word.len()) > most || candidate == word {
            continue;
        }
        let distance = distance(word, candidate);
        if distance <= most && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The number of letters to insert, delete, replace or swap with their neighbor; case is ignored.
fn distance(a: &str, b: &str) -> usize {
    let lower = |text: &str| text.to_ascii_lowercase().into_bytes();
    let (a, b) = (lower(a), lower(b));
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            let mut least = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                least = least.min(before[j - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_words_are_found_and_far_ones_are_not() {
        let known = ["Account", "Amount", "deposit"];
        assert_eq!(closest("Acount", known), Some("Account"));
        assert_eq!(closest("account", known), Some("Account"));
        assert_eq!(closest("depoist", known), Some("deposit"));
        assert_eq!(closest("Teller", known), None);
    }

    #[test]
    fn the_distance_is_the_number_of_changes() {
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "acb"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }
}

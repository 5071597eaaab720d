//! The grammar (B.3) and the precedence of operators (B.2.2).

use spandrel_constraint::{Constraint, ConstraintError, Expression, Limits};

pub(crate) fn parse(text: &str) -> Result<Constraint, ConstraintError> {
    Constraint::parse(text, Limits::default())
}

/// The expression with all operators in parentheses.
fn grouped(text: &str) -> String {
    fn group(expression: &Expression) -> String {
        let list = |operands: &[Expression], operator: &str| {
            let texts: Vec<String> = operands.iter().map(group).collect();
            format!("({})", texts.join(&format!(" {operator} ")))
        };
        match expression {
            Expression::Or(operands) => list(operands, "or"),
            Expression::And(operands) => list(operands, "and"),
            Expression::Compare { comparison, left, right } => {
                format!("({} {} {})", group(left), comparison.symbol(), group(right))
            }
            Expression::In { element, sequence } => format!("({} in {sequence})", group(element)),
            Expression::Substring { part, whole } => format!("({} ~ {})", group(part), group(whole)),
            Expression::Sum { first, rest } => rest
                .iter()
                .fold(group(first), |sum, (operator, next)| format!("({sum} {} {})", operator.symbol(), group(next))),
            Expression::Product { first, rest } => rest
                .iter()
                .fold(group(first), |sum, (operator, next)| format!("({sum} {} {})", operator.symbol(), group(next))),
            Expression::Not(operand) => format!("(not {})", group(operand)),
            other => other.to_string(),
        }
    }
    group(parse(text).unwrap().expression().unwrap())
}

#[test]
fn each_operator_binds_more_strongly_than_the_one_before_it() {
    for (text, expected) in [
        ("a or b and c", "(a or (b and c))"),
        ("a and b or c", "((a and b) or c)"),
        ("a and b == c", "(a and (b == c))"),
        ("a == b in c", "(a == (b in c))"),
        ("a in b != c", "((a in b) != c)"),
        ("a ~ b in c", "((a ~ b) in c)"),
        ("a ~ b + c", "(a ~ (b + c))"),
        ("a + b ~ c", "((a + b) ~ c)"),
        ("a + b * c", "(a + (b * c))"),
        ("a * b - c / d", "((a * b) - (c / d))"),
        ("a * not b", "(a * (not b))"),
        ("not a == b", "((not a) == b)"),
        ("not exist a and exist b", "((not exist a) and exist b)"),
        ("(a or b) and c", "((a or b) and c)"),
        ("not (a and b)", "(not (a and b))"),
        ("a - b - c", "((a - b) - c)"),
        ("a / b * c", "((a / b) * c)"),
        ("a or b or c", "(a or b or c)"),
        ("3 - -4", "(3 - -4)"),
        ("3 -4", "(3 - 4)"),
        ("3 + +4", "(3 + 4)"),
    ] {
        assert_eq!(grouped(text), expected, "{text}");
    }
}

#[test]
fn each_factor_of_the_grammar_is_parsed() {
    for (text, expected) in [
        ("TRUE", "TRUE"),
        ("FALSE", "FALSE"),
        ("exist a", "exist a"),
        ("a", "a"),
        ("0", "0"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("18446744073709551616", "1.8446744073709552e19"),
        ("1.", "1.0"),
        (".5", "0.5"),
        ("1.5", "1.5"),
        ("1e3", "1000.0"),
        ("1E+3", "1000.0"),
        ("2.5e-1", "0.25"),
        ("- 1", "-1"),
        ("''", "''"),
        (r"'it\'s'", r"'it\'s'"),
        (r"'C:\\temp'", r"'C:\\temp'"),
        ("'or'", "'or'"),
        ("((a))", "a"),
        ("Größe", "Größe"),
        ("x_1", "x_1"),
        ("\t a \n\r", "a"),
    ] {
        assert_eq!(parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string(), expected);
    }
    assert_eq!(parse(" ").unwrap().expression(), None);
}

#[test]
fn the_names_of_an_expression_are_those_of_all_its_factors() {
    for (text, expected) in [
        ("TRUE", &[][..]),
        ("a and b or a", &["a", "b"]),
        ("a < b and c ~ 'd' and 'e' ~ f", &["a", "b", "c", "f"]),
        ("a + b - 1 == c * 2 / d", &["a", "b", "c", "d"]),
        ("not a and exist b and (x + 1) in c", &["a", "b", "c", "x"]),
        ("exist a and a > 1 and not exist a", &["a"]),
    ] {
        let mut names = parse(text).unwrap().expression().unwrap().property_names();
        names.sort_unstable();
        assert_eq!(names, expected, "{text}");
    }
}

#[test]
fn words_of_the_preference_language_are_names_in_constraints() {
    for name in ["min", "max", "with", "random", "first"] {
        assert_eq!(parse(name).unwrap().expression(), Some(&Expression::Property(name.to_owned())));
    }
    // Other letters make other words.
    for name in ["And", "TRUEs", "true", "False", "exists", "inn", "nota"] {
        assert_eq!(parse(name).unwrap().expression(), Some(&Expression::Property(name.to_owned())));
    }
}

#[test]
fn a_text_that_the_grammar_does_not_derive_is_refused_with_its_position() {
    for (text, at, expected) in [
        ("a ==", 4, "an operand"),
        ("a = b", 2, "an operator or an operand"),
        ("a == b == c", 7, "an operator or the end of the text"),
        ("a < b < c", 6, "an operator or the end of the text"),
        ("a in b in c", 7, "an operator or the end of the text"),
        ("a ~ b ~ c", 6, "an operator or the end of the text"),
        ("not not a", 4, "an operand"),
        ("-a", 1, "a number"),
        ("--1", 1, "a number"),
        ("+'x'", 1, "a number"),
        ("a b", 2, "an operator or the end of the text"),
        ("(a", 2, "an operator or `)`"),
        ("a)", 1, "an operator or the end of the text"),
        ("()", 1, "an operand"),
        ("exist 3", 6, "the name of a property"),
        ("exist TRUE", 6, "the name of a property"),
        ("exist (a)", 6, "the name of a property"),
        ("1 in 2", 5, "the name of a property"),
        ("1 in (a)", 5, "the name of a property"),
        ("'abc", 4, "the closing quote of a string"),
        (r"'a\n'", 2, r"\' or \\"),
        (r"'a\", 2, r"\' or \\"),
        ("1e", 2, "the digits of an exponent"),
        ("1e+", 3, "the digits of an exponent"),
        (".", 0, "a number"),
        ("1.5.5", 3, "an operator or the end of the text"),
        ("_a", 0, "an operator or an operand"),
        ("$.a", 0, "an operator or an operand"),
        ("a && b", 2, "an operator or an operand"),
        ("Ωmega", 0, "an operator or an operand"),
        ("or", 0, "an operand"),
        ("a and", 5, "an operand"),
        ("ä ! b", 3, "an operator or an operand"),
    ] {
        match parse(text).expect_err(text) {
            ConstraintError::Syntax { at: position, expected: part, .. } => {
                assert_eq!((position, part), (at, expected), "{text}")
            }
            other => panic!("{text}: {other}"),
        }
    }
    assert_eq!(parse("2 * 1e999").unwrap_err(), ConstraintError::Number { at: 4 });
    let error = parse("a ==").unwrap_err();
    assert_eq!(error.to_string(), "expected an operand at octet 4, not the end of the text");
    let error = parse(&format!("a {}", "b".repeat(1_000))).unwrap_err().to_string();
    assert!(error.len() < 120, "{error}");
}

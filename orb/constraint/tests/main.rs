//! Tests of the constraint and preference languages: by sentences of the specification, with random expressions
//! beside an interpreter of their texts, and with hostile texts.

mod extended;
mod grammar;
mod hostile;
mod interpreter;
mod preferences;
mod random;
mod values;

//! Tokens that cannot be guessed.

use std::io;

use crate::{
    error::BulkError,
    wire::{TOKEN_OCTETS, Token},
};

/// A token of random octets of the system.
pub(crate) fn new_token() -> Result<Token, BulkError> {
    let mut octets = [0; TOKEN_OCTETS];
    getrandom::fill(&mut octets)
        .map_err(|error| BulkError::Storage("random number generator", io::Error::other(error)))?;
    Ok(Token(octets))
}

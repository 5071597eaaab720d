//! Tests of the trading service, by sentences of its specification.

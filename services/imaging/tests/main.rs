//! Tests of the image store over its references, its bulk streams and its process.

mod authorization;
mod executable;
mod hostile;
mod images;
mod restarts;
mod support;
mod viewers;

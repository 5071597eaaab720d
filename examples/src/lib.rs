//! Small complete programs that use Spandrel.

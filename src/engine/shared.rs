//! A value that checkpoints and replicas share.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A change copies the value if it is shared at that moment.
#[derive(Debug)]
pub(super) struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    pub fn new(value: T) -> Shared<T> {
        Shared(Arc::new(value))
    }

    pub fn share(&self) -> Arc<T> {
        self.0.clone()
    }
}

impl<T> Clone for Shared<T> {
    /// Shares the value.
    fn clone(&self) -> Shared<T> {
        Shared(self.0.clone())
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

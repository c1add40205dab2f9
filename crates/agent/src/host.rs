//! The host page: local apps in frames, with the person's consent, and the models they share.

"""The Conformance Test Kit: drives an adapter's agent through a real engine and says what holds of its contract."""

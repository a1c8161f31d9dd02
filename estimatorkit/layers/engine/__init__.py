"""The `Layer` base class and its mixins."""

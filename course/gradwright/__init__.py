"""The framework that the course builds."""

"""`ferry doctor`: facts are gathered here, findings are pure functions over them; nothing is ever written."""

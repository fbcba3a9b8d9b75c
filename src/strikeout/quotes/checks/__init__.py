"""The rules quotes are held to: what each is for, how strict it is, and one small function a rule."""

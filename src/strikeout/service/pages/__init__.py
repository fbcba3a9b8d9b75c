"""Pages for a browser: HTML from templates, plain forms, and a few hundred lines of script for the rest.

Every verb works without script: a form is posted, the change runs as a job, and the browser is sent to its page.
"""

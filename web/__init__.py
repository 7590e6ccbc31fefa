"""The browser client library and the pages, served by the router as they are: plain ES modules, no build step."""

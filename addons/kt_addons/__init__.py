"""Where mitmproxy meets us: the instance meter, the dispatcher, and the gateway process that composes them."""

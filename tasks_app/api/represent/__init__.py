"""How rows look from outside. These models are the answers, so the OpenAPI description cannot differ from them."""

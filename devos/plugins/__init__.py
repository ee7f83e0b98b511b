"""The actions that ship with DevOS, one package a plugin. They come in through entry points, as anybody's do."""

package demosite

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	articleScheme = "article://"
	markdown      = "text/markdown"
)

func (t *toolServer) addResources() {
	t.server.AddResourceTemplate(&mcp.ResourceTemplate{
		Name:        "article",
		Title:       "Article",
		URITemplate: articleScheme + "{slug}",
		MIMEType:    markdown,
		Description: "An article as Markdown, with its title as heading. The same articles are visible as with " +
			"get_article.",
	}, t.readArticle)
	t.server.AddReceivingMiddleware(t.listResources)
}

// readArticle returns the same error for a missing article and for one that the caller may not see.
func (t *toolServer) readArticle(ctx context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	uri := req.Params.URI
	acting, err := t.actor(req, "get_article")
	if err != nil {
		return nil, mcp.ResourceNotFoundError(uri)
	}
	article, err := t.site.find(ctx, acting, strings.TrimPrefix(uri, articleScheme))
	if err != nil {
		return nil, wireError(ctx, err, mcp.ResourceNotFoundError(uri))
	}
	text := "# " + article.Title + "\n\n" + article.Body
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: uri, MIMEType: markdown, Text: text}}}, nil
}

// listResources lists from the database for each caller, because the SDK's own list is the same for
// all callers.
func (t *toolServer) listResources(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if list, ok := req.(*mcp.ListResourcesRequest); ok {
			return t.resourcePage(ctx, list)
		}
		return next(ctx, method, req)
	}
}

func (t *toolServer) resourcePage(ctx context.Context,
	req *mcp.ListResourcesRequest) (*mcp.ListResourcesResult, error) {
	result := &mcp.ListResourcesResult{Resources: []*mcp.Resource{}, Cacheable: mcp.Cacheable{CacheScope: private}}
	acting, err := t.actor(req, "list_articles")
	if err != nil {
		return result, nil
	}
	in := pageRequest{Limit: maxLimit}
	if req.Params != nil {
		in.Cursor = req.Params.Cursor
	}
	page, err := t.site.list(ctx, acting, in)
	if err != nil {
		return nil, wireError(ctx, err, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "unknown cursor"})
	}
	for _, article := range page.Articles {
		result.Resources = append(result.Resources, resourceOf(article))
	}
	result.NextCursor = page.NextCursor
	return result, nil
}

func resourceOf(article *Article) *mcp.Resource {
	return &mcp.Resource{
		URI:         articleScheme + article.Slug,
		Name:        article.Slug,
		Title:       article.Title,
		MIMEType:    markdown,
		Description: "By " + article.Author + ", " + string(article.State),
		Annotations: &mcp.Annotations{LastModified: article.Updated.Format(time.RFC3339)},
	}
}

// wireError returns the JSON-RPC error for a request whose result cannot contain a refusal.
func wireError(ctx context.Context, err, refusal error) error {
	if _, refused := errors.AsType[Refusal](err); refused {
		return refusal
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: publicError(ctx, err).Error()}
}
